#!/usr/bin/env bash
# Looks at the repository once and does what waits there: labelled issues, reviews and failed checks. What was begun is kept in
# $STATE, which the next job gets back from the cache.
set -euo pipefail
export IO_HOME="$STATE/home"
project="$STATE/project"
io() { node "$ACTION_PATH/../bin/io.js" "$@"; }
field() { node -p 'const found = JSON.parse(require("node:fs").readFileSync(0, "utf8")); found[process.argv[1]] ?? ""' "$1"; }

mkdir -p "$STATE" "$OUT"
chmod 700 "$STATE"
if [ ! -d "$project/.git" ]; then
  rm -rf "$project"
  # Git gets the token from the environment, so that it is in no URL, command line or file.
  # shellcheck disable=SC2016
  helper='!f() { printf "username=x-access-token\npassword=%s\n" "$IO_FORGE_TOKEN"; }; f'
  git -c credential.helper= -c credential.helper="$helper" clone --quiet "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY.git" "$project"
fi
# Nobody can answer a question in a job, so each counts as denied soon.
io config set approvalExpiresMs 5000 > /dev/null
io config set github.tokenEnv IO_FORGE_TOKEN > /dev/null
if [ "$GITHUB_API_URL" != "https://api.github.com" ]; then io config set github.apiUrl "$GITHUB_API_URL" > /dev/null; fi

# The watch is made by the first job, and anew when the inputs change.
wanted=(--max-rounds "$MAX_ROUNDS" --reviews --checks)
if [ -n "$LABEL" ]; then wanted+=("--label=$LABEL"); fi
if [ -n "$MENTION" ]; then wanted+=("--mention=$MENTION"); fi

code=0
trap 'io stop > /dev/null 2>&1 || true' EXIT
io start > /dev/null
if [ "$(cat "$STATE/wanted" 2> /dev/null || true)" != "${wanted[*]}" ] || [ ! -s "$STATE/watch" ]; then
  if [ -s "$STATE/watch" ]; then io watch remove "$(cat "$STATE/watch")" > /dev/null || true; fi
  io watch add "$project" "${wanted[@]}" --json | field id > "$STATE/watch"
  printf '%s' "${wanted[*]}" > "$STATE/wanted"
fi
io watch wait "$(cat "$STATE/watch")" --at-most "$MINUTES" --json > "$OUT/watch.json" || code=$?
io watch show "$(cat "$STATE/watch")" > "$OUT/summary.md" || true
# Other people's words stand there, as code and nothing else.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then sed 's/^/    /' "$OUT/summary.md" >> "$GITHUB_STEP_SUMMARY"; fi
printf 'exit-code=%s\nbranch=\n' "$code" >> "$GITHUB_OUTPUT"
if [ "$code" = 1 ] || [ "$code" = 3 ]; then exit 0; fi
exit "$code"
