/**
 * Shell scripts that run several git commands in one process, "$0" being git and "$@" the command, because each started
 * program costs a copy of the daemon's memory map and a sandbox. No foreign text is ever inserted into them.
 */
const GIT = '"$0" --no-pager';

/** Prints the commit, tree and branch of a folder, one per line. */
export const STATE = ["rev-parse", "HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"] as const;

/** Agents may write outside a sparse checkout; such files are added too. */
export const ADD_ALL = ["add", "-A", "--sparse"] as const;

/** Adds what is readable, and skips files that are not. */
export const ADD_READABLE = [...ADD_ALL, "--ignore-errors"] as const;

/** The exit code of a script that did nothing because the folder contains repositories. */
export const HAS_LINKS = 97;

/**
 * Describes a folder in entries that end with a zero byte: its paths, one per line; its last commit and that commit's files;
 * its branch; and then the output of the command, which may be empty. Reading the index proves that it is readable.
 */
export const LOOK_FIRST = `${GIT} rev-parse --show-toplevel --git-common-dir --show-prefix || exit
printf '\\0'
${GIT} rev-parse HEAD 'HEAD^{tree}' 2>/dev/null
printf '\\0'
${GIT} symbolic-ref -q HEAD
printf '\\0'
${GIT} ls-files -- ./.git/index || exit
"$@" || exit 0`;

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(" ");

/** If the command succeeds, its output ends with the folder's commit, tree and branch. */
export const AND_STATE = `"$@" && exec ${GIT} ${quoted(STATE)}`;

/** The same, after adding everything in the folder. */
export const ADD_FIRST = `${GIT} ${quoted(ADD_ALL)} || exit ${HAS_LINKS}
if ${GIT} ls-files --stage | grep -q '^160000 '; then exit ${HAS_LINKS}; fi
${AND_STATE}`;
