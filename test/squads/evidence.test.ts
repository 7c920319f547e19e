import { expect, test } from "vitest";
import { detectTests } from "../../src/project/test-commands.ts";
import { evidenceOf, formatEvidence } from "../../src/squads/evidence.ts";
import type { ToolCall } from "../../src/store/tool-calls.ts";
import { soon } from "../support/soon.ts";

const yes = [
  "npm test",
  "npm run test:unit",
  "cd web && pnpm test",
  "CI=1 npx vitest run src",
  "npm test 2>&1",
  "go test ./...",
  "cargo test --all",
  "python3 -m pytest -q",
  "./gradlew check",
  "make -j4 test",
  "node --test",
  "bundle exec rspec",
  "bash scripts/test.sh",
  "npm t",
  "bash -c 'npm test'",
  'sh -c "cd web && npm test"',
  "bash -lc 'npm test'",
  "bash -euo pipefail -c 'npm test | tail'",
  "bash <<'END'\nnpm test\nEND",
  "(cd . && npm test)",
  "{ npm test; }",
  "npm --prefix . test",
  "npm -w web test",
  "vendor/bin/phpunit",
  "pipenv run pytest",
  "pnpm --filter web test",
  "pnpm -r run test",
  "yarn --cwd web test",
  "yarn workspace web test",
  "yarn jest",
  "pnpm vitest run",
  "pnpm exec vitest",
  "npm exec -- jest",
  ".venv/bin/pytest",
  "python3 tests/test_x.py",
  "node test.js",
  "node node_modules/vitest/vitest.mjs run",
  "turbo run test",
  "npx nx test web",
  "npx nx run-many -t test",
  "php artisan test",
  "scripts/test.sh",
  "! npm test",
  "timeout 60 npm test",
  "timeout -k 5 60s npm test",
  "sudo -u app env CI=1 npm test",
  "out=$(npm test)",
  'echo "$(npm test)"',
  "if npm test; then echo fine; fi",
  "make -C web test",
  "docker compose exec -T web npm test",
  "docker run --rm node:24 sh -c 'npm test'",
  "playwright test",
  "coverage run -m pytest",
  "cargo +nightly test",
  "mvn -pl core -am verify",
  "gradle :app:test",
  "cmake --build build --target test",
  `echo ${"x".repeat(600)} && npm test`,
];
const no = [
  "npm run typecheck",
  "npm run build",
  "ls test",
  "cat test.log",
  "git add test",
  "echo npm test",
  "grep -r test .",
  "npm install",
  "sh deploy-latest.sh",
  "./latest",
  "node contest.js",
  "vitest --version || true; make check-format",
  "npm test -- --help",
  "make check-format",
  "make -n test",
  "pytest --collect-only",
  "test -f package.json",
  "[ -d test ]",
  "npm --silent install test",
  "pnpm -w add vitest",
  "npx playwright install",
  "mvn -B package -DskipTests",
  "./gradlew build -x test",
  "npm run lint:test",
  "cat > run.sh <<'END'\nnpm test\nEND",
  "echo 'bash -c \"npm test\"'",
  "# npm test",
  "git commit -m 'npm test'",
  "python3 -c 'import pytest'",
  "bash -n scripts/test.sh",
];
const hidden = [
  "npm test | tail -5",
  "npm test || true",
  "npm test; echo done",
  "npm test &",
  "npm test\necho $?",
  "! npm test",
  "! (cd . && npm test)",
  "bash -c 'npm test; true'",
  "bash -c 'npm test' || true",
  "(npm test) | tail",
  "(npm test; true)",
  "true || npm test",
  'echo "$(npm test)"',
  "if npm test; then echo fine; fi",
  "for each in a b; do npm test; done",
];
const theirs = [
  "npm test",
  "npm test 2>&1",
  "npm test && echo fine",
  'npm test -- -t "a; b"',
  "set -o pipefail; npm test | tail",
  "set -euo pipefail\nnpm test | tail",
  "cd x; npm test;",
  "bash -c 'npm test'",
  "bash -euo pipefail -c 'npm test | tail'",
  "(cd . && npm test)",
  "{ npm test; }",
  "out=$(npm test)",
  "npm test # all of them; really",
  "npm test &> out.log",
];

test("commands that run tests are told from those that do not", () => {
  expect(yes.filter((command) => !detectTests(command).isTest)).toEqual([]);
  expect(no.filter((command) => detectTests(command).isTest)).toEqual([]);
});

test("a test whose exit code is hidden by what stands around it is not taken for a passed one", () => {
  expect(hidden.filter((command) => !detectTests(command).isTest || detectTests(command).exitCodeIsTests)).toEqual([]);
  expect(theirs.filter((command) => !detectTests(command).exitCodeIsTests)).toEqual([]);
});

test("a command that was written to make a reader hang or fall is read in no time", () => {
  const started = performance.now();
  for (const piece of [
    "(",
    "$(",
    '"',
    "'",
    "`",
    "{ ",
    "! ",
    "bash -c ",
    "<<A ",
    "npm --prefix ",
    "\\",
    'sh -c "',
    "docker exec ",
    "env ",
  ])
    expect(typeof detectTests(piece.repeat(40_000)).isTest).toBe("boolean");
  expect(performance.now() - started).toBeLessThan(soon(5_000));
});

const call = (command: string, exitCode: number): ToolCall => ({
  seq: 1,
  callId: "c",
  sessionId: "s",
  owner: "t",
  attempt: 1,
  actor: "Face",
  tool: "shell",
  kind: "effect",
  args: JSON.stringify({ command }),
  argsHash: "",
  state: "done",
  result: `exit code: ${exitCode}\n`,
  resultHash: "",
  durationMs: 1,
  createdAt: "",
});
const verdictOn = (...commands: [command: string, exitCode: number][]) =>
  evidenceOf(
    {
      calls: commands.map(([command, code]) => call(command, code)),
      filesChanged: [],
      treeBefore: "a",
      treeAfter: "b",
      alongside: [],
      byOthers: [],
      branch: undefined,
      base: undefined,
    },
    "done",
  ).verdict;

test("the last test is what the verdict is about, however it was started", () => {
  expect(verdictOn(["npm run test:ok", 0], ["bash -c 'npm test'", 1])).toBe(
    "claimed done, but `bash -c 'npm test'` last exited 1",
  );
  expect(verdictOn(["npm test", 1], ["sh deploy-latest.sh", 0])).toBe("claimed done, but `npm test` last exited 1");
  expect(verdictOn(["vitest --version || true; make check-format", 0])).toBe("claimed done; no test command was run");
  expect(verdictOn(["! npm test", 0])).toBe(
    "claimed done; `! npm test` exited 0, but what stands around the tests hides their own code",
  );
  const long = `echo ${"x".repeat(600)} && npm test`;
  expect(verdictOn(["npm run test:ok", 0], [long, 1])).toMatch(/^claimed done, but `echo x+…` last exited 1$/);
});

test("a test that passed before other commands ran is not taken for evidence of what they left", () => {
  const doubt = "claimed done; `npm test` exited 0, but commands ran after it";
  for (const command of [
    "echo broken > src.js",
    "sed -i s/a/b/ src.js",
    "ls; rm src.js",
    "find . -name '*.js' -delete",
    "find . -exec rm {} +",
    "cat <<'END' > src.js\nbroken\nEND",
    "echo $(rm src.js)",
    'echo "`rm src.js`"',
    "bash -c 'rm src.js'",
    "cat patch | sh",
    "npm run build",
  ])
    expect([command, verdictOn(["npm test", 0], [command, 0])]).toEqual([command, doubt]);
  expect(verdictOn(["npm test && rm src.js", 0])).toBe(
    "claimed done; `npm test && rm src.js` exited 0, but commands ran after it",
  );
  for (const command of [
    "git add -A && git commit -m 'all > done'",
    "ls -la",
    "cat src.js | head -5",
    "grep -rn x . 2>/dev/null",
    "tail -n 3 out.log 2>&1",
    "pwd",
    "echo done",
    "wc -l src.js",
    "find . -name '*.js'",
    "diff a b",
    "cd web && git status",
    "bash -c 'git log -1'",
    "(cd web; ls)",
  ])
    expect([command, verdictOn(["npm test", 0], [command, 0])]).toEqual([command, "done; `npm test` last exited 0"]);
  expect(verdictOn(["npm test", 0], ["echo broken > src.js", 0], ["npm test", 0])).toBe("done; `npm test` last exited 0");
  expect(verdictOn(["npm test && git status", 0])).toBe("done; `npm test && git status` last exited 0");
});

test.each(["failed", "cancelled"] as const)("a task that %s says where its work is, and offers no merge", (status) => {
  const own = { branch: "io/t_1", base: "a".repeat(40), treeBefore: "b".repeat(40), treeAfter: "c".repeat(40) };
  const evidence = { filesChanged: ["a.txt"], commands: [], ...own };
  expect(formatEvidence(evidence, "done")).toContain("git merge io/t_1");
  expect(formatEvidence(evidence, status)).toMatch(/on the branch io\/t_1.*git diff/);
  expect(formatEvidence(evidence, status)).not.toContain("merge");
});
