/**
 * Texts for the shell that run several gits in one go, "$0" being git and "$@" the command: for each program that is started
 * the daemon's memory is mapped anew and a wall is put up. Nothing of anybody's else is ever put into them.
 */
const GIT = '"$0" --no-pager';

/** What a folder stands on: commit, tree and branch, a line each. */
export const STATE = ["rev-parse", "HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"] as const;

/** What agents write outside of a sparse checkout is theirs to write, and is not lost. */
export const ADD_ALL = ["add", "-A", "--sparse"] as const;

/** How a script ends that has done nothing, because there are repositories in the folder. */
export const HAS_LINKS = 97;

/**
 * What a folder is to git, in entries that end with a zero byte: its places, a line each; the files of its last commit; who
 * commits in it; and after an empty entry what the command says.
 */
export const LOOK_FIRST = `${GIT} rev-parse --show-toplevel --git-common-dir --show-prefix || exit
printf '\\0'
${GIT} rev-parse -q --verify 'HEAD^{tree}'
printf '\\0'
${GIT} config -z --get-regexp '^user\\.(name|email)$'
printf '\\0'
exec "$@"`;

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(" ");

/** Where the command works, its output ends with what the folder then stands on. */
export const AND_STATE = `"$@" && exec ${GIT} ${quoted(STATE)}`;

/** The same, after everything in the folder was added. */
export const ADD_FIRST = `${GIT} ${quoted(ADD_ALL)} || exit ${HAS_LINKS}
if ${GIT} ls-files --stage | grep -q '^160000 '; then exit ${HAS_LINKS}; fi
${AND_STATE}`;
