import { lstatSync, mkdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Git, GitOptions } from "../git/command.ts";
import { createBreath } from "../lib/breath.ts";
import { UserError } from "../lib/errors.ts";
import { copyPlainAt } from "../lib/pinned/copy.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";
import type { ExecResult } from "../process/exec.ts";
import type { Change, ChangedFolder, Entry } from "../store/turn-changes.ts";

/** Enough for a repository with 300,000 files. */
const MAX_INDEX_BYTES = 50_000_000;
const MAX_OUTPUT = 40_000_000;
const DEADLINE_MS = 30_000;
/** Runs nothing that a repository's attributes name, and keeps every byte as it is. */
const ATTRIBUTES = "* -text -eol -crlf -filter -ident -working-tree-encoding\n";
const SETTINGS = ["core.autocrlf=false", "core.splitIndex=false", "core.untrackedCache=false", "core.quotePath=false"];
const AUTHOR = { NAME: "IO", EMAIL: "io@localhost" };

/** Folders that an undo does not restore in a folder without git. */
const PLAIN_EXCLUDES = "node_modules/\n.venv/\n";

const GIT = '"$0" --no-pager';
/** Prints where a repository is, and the properties of its file system. */
const LOOK = `${GIT} rev-parse --show-toplevel --git-dir --git-common-dir --git-path index --show-object-format || exit
${GIT} config --get core.fileMode
exit 0`;
const STAGE = `if [ -s "$IO_DIR/gone" ]; then ${GIT} update-index -z --index-info <"$IO_DIR/gone" || exit; fi
if [ -s "$IO_DIR/there" ]; then ${GIT} update-index --add --remove --replace -z --stdin <"$IO_DIR/there" || exit; fi`;
/** Moves the ref to a commit of a tree. The ref is in the user's repository; everything else comes from our own folder. */
const KEEP = `commit=$(${GIT} commit-tree "$tree" \${parent:+-p "$parent"} -m kept </dev/null) || exit
(unset GIT_WORK_TREE GIT_OBJECT_DIRECTORY GIT_INDEX_FILE; GIT_DIR="$IO_REPOSITORY" exec ${GIT} update-ref "$IO_REF" "$commit") || exit`;
const SEE = `${GIT} update-index --no-assume-unchanged -z --stdin <"$IO_DIR/there" || exit
exec ${GIT} update-index --no-skip-worktree -z --stdin <"$IO_DIR/there"`;
const TREE = `${STAGE}
exec ${GIT} write-tree`;
const KEPT_TREE = `${STAGE}
tree=$(${GIT} write-tree) || exit
parent=$IO_PARENT
${KEEP}
echo "$tree"`;
const CHANGES = `one() { rm -f "$GIT_INDEX_FILE"; ${GIT} update-index -z --index-info <"$1" && ${GIT} write-tree; }
before=$(one "$IO_DIR/before") && after=$(one "$IO_DIR/after") || exit
parent=$(${GIT} commit-tree "$before" -m before </dev/null) || exit
tree=$after
${KEEP}
echo "$before $after $commit"`;
const EXTRACT = `rm -f "$GIT_INDEX_FILE"
${GIT} update-index -z --index-info <"$IO_DIR/wanted" || exit
exec ${GIT} checkout-index -a -f --prefix="$IO_DIR/out/"`;

/** A file that an effect changed, before and after. */
export interface Seen {
  path: string;
  before: Entry | null;
  after: Entry | null;
}

export interface ShadowIndexDeps {
  git: Git;
  /** IO's folder for this record. */
  folder: string;
  root: string;
  place: ChangedFolder;
  /** The name of the ref that keeps everything. */
  ref: string;
}

/** Finds the repository at a folder and how to address it, or says why it cannot be used. */
export async function lookAt(git: Git, root: string): Promise<ChangedFolder | { why: string }> {
  const looked = await git.run(root, [], { script: LOOK, deadlineMs: DEADLINE_MS });
  if (looked.code !== 0) return { why: said(looked) };
  const [top = "", gitDir = "", common = "", , hash = "", mode = ""] = looked.stdout.split("\n");
  if (realOf(top) !== root) return { why: "git takes another folder for its top" };
  const commonDir = realOf(resolve(root, common));
  if (git.isOwn(commonDir)) return { why: "its repository lies where IO keeps its own files" };
  if (hash !== "sha1" && hash !== "sha256") return { why: "git names its files in a way that is not known here" };
  return {
    kind: "git",
    gitDir: realOf(resolve(root, gitDir)),
    objects: join(commonDir, "objects"),
    hash,
    fileMode: mode !== "false",
  };
}

/** A folder without git is kept in a repository of IO's own. */
export function plainPlace(folder: string): ChangedFolder {
  const gitDir = join(folder, "git");
  return { kind: "folder", gitDir, objects: join(gitDir, "objects"), hash: "sha1", fileMode: true };
}

/** Git for the user's folder, with our own git folder and index, and the objects of its repository. */
function shadowGit({ git, folder, root, place: { kind, objects }, ref }: ShadowIndexDeps) {
  const own = join(folder, "git");
  const index = join(folder, "index");
  const repository = dirname(objects);
  const env = {
    ...{ GIT_DIR: own, GIT_WORK_TREE: root, GIT_OBJECT_DIRECTORY: objects, GIT_INDEX_FILE: index, GIT_LITERAL_PATHSPECS: "1" },
    ...{ IO_DIR: folder, IO_REF: ref, IO_REPOSITORY: kind === "git" ? repository : own },
    ...{ GIT_AUTHOR_NAME: AUTHOR.NAME, GIT_AUTHOR_EMAIL: AUTHOR.EMAIL },
    ...{ GIT_COMMITTER_NAME: AUTHOR.NAME, GIT_COMMITTER_EMAIL: AUTHOR.EMAIL },
  };
  const writable = [folder, ...(kind === "git" ? [repository] : [])];
  const must = async (args: readonly string[], { env: more = {}, ...options }: GitOptions = {}): Promise<string> => {
    const result = await git.run(root, args, {
      ...{ deadlineMs: DEADLINE_MS, maxOutput: MAX_OUTPUT, settings: SETTINGS, writable },
      ...options,
      env: { ...env, ...more },
    });
    if (result.code !== 0 || result.stdout.length > MAX_OUTPUT) throw new UserError(said(result));
    return result.stdout;
  };
  const note = (name: string, text: string) =>
    withFolder(realOf(folder), (held) => replaceFile(held, name, text, { durable: false }));
  return { own, index, env, writable, must, note };
}

/**
 * Git with our own index for the user's folder. The user's index, branches, stash, hooks, filters and settings play no part;
 * only objects and one ref are written to the repository.
 */
export function openShadowIndex(deps: ShadowIndexDeps) {
  const { git, folder, root, place } = deps;
  const { own, index, env, writable, must, note } = shadowGit(deps);
  const writeLists = (gone: readonly string[], there: readonly string[]) => {
    const zero = "0".repeat(place.hash === "sha1" ? 40 : 64);
    note("gone", gone.map((path) => `0 ${zero}\t${path}\0`).join(""));
    note("there", there.map((path) => `${path}\0`).join(""));
  };
  const prepareOut = (entries: Parameters<typeof info>[0]): string => {
    const out = join(folder, "out");
    rmSync(out, { recursive: true, force: true });
    mkdirSync(out, { mode: 0o700 });
    note("wanted", info(entries));
    return out;
  };

  return {
    /** Creates the folder and an index. It starts as a copy of the user's index, which saves reading all files. */
    make: () => makeIndex(folder, place),
    /** The paths that differ from the index. A repository inside that this one does not record ends with a slash. */
    async differing(paths: readonly string[] | null): Promise<string[]> {
      const only = paths === null ? [] : ["--", ...paths];
      // In parallel; the first command alone uses all processors.
      const listed = await Promise.all([
        must(["diff-files", "--name-only", "--ignore-submodules=dirty", "-z", ...only]),
        must(["ls-files", "-o", "--exclude-standard", "-z", ...only]),
      ]);
      return [...new Set(listed.join("").split("\0"))].filter((path) => path !== "");
    },
    /** The existing files that the user has told git to overlook. */
    overlooked: async () => overlookedIn(await must(["ls-files", "-v", "-z"]), root),
    /** Makes git look at these files like at any others. */
    async see(paths: readonly string[]): Promise<void> {
      writeLists([], paths);
      await must([], { script: SEE });
    },
    /** The paths that an unfinished merge has left with several versions. */
    async unmerged(): Promise<string[]> {
      const listed = await must(["ls-files", "-u", "-z"]);
      return [...new Set(listed.split("\0").flatMap((line) => (line === "" ? [] : [line.slice(line.indexOf("\t") + 1)])))];
    },
    /** Updates these paths in the index to their current state and returns its tree; with `keep`, the ref keeps it. */
    async stage(gone: readonly string[], there: readonly string[], keep?: { parent: string | undefined }): Promise<string> {
      writeLists(gone, there);
      const written = await must([], { script: keep ? KEPT_TREE : TREE, ...(keep && { env: { IO_PARENT: keep.parent ?? "" } }) });
      return written.trim();
    },
    /** The files that differ between two trees. */
    async compare(before: string, after: string): Promise<Seen[]> {
      return changesIn(await must(["diff-tree", "-r", "-z", "--raw", "--no-renames", before, after]));
    },
    /** The sizes of files as the index recorded them; 0 if it does not say. */
    async sizes(paths: readonly string[]): Promise<Map<string, number>> {
      return sizesIn(await must(["ls-files", "--debug", "-z", ...(paths.length > 200 ? [] : ["--", ...paths])]));
    },
    /** The sizes of stored objects in bytes. */
    async lengths(oids: readonly string[]): Promise<Map<string, number>> {
      note("wanted", oids.map((oid) => `${oid}\n`).join(""));
      const told = await must([], { script: `exec ${GIT} cat-file --batch-check <"$IO_DIR/wanted"` });
      return new Map(told.split("\n").map((line) => [line.split(" ")[0] ?? "", Number(line.split(" ")[2])]));
    },
    /** Keeps changes to files under the ref, as two trees and the commit that holds both. */
    async keepChanges(files: Readonly<Record<string, Pick<Change, "before" | "after">>>) {
      const all = Object.entries(files);
      note("before", info(all.map(([path, { before }]) => [path, before])));
      note("after", info(all.map(([path, { after }]) => [path, after])));
      const trees = await must([], { script: CHANGES, env: { GIT_INDEX_FILE: `${index}-changes` } });
      const [before = "", after = "", commit = ""] = trees.trim().split(" ");
      return { before, after, commit };
    },
    /** Writes stored files into a folder of ours, each under its given name; returns that folder. */
    async extract(entries: readonly (readonly [name: string, entry: Entry])[]): Promise<string> {
      const out = prepareOut(entries.map(([name, { oid }]) => [name, { mode: "100644", oid }]));
      await must([], { script: EXTRACT, env: { GIT_INDEX_FILE: `${index}-wanted` } });
      return out;
    },
    /** The same through the filters that the repository names for these paths, as in a checkout. They run in the sandbox. */
    async extractFiltered(entries: readonly (readonly [path: string, entry: Entry])[]): Promise<string> {
      const out = prepareOut(entries);
      const env = { IO_DIR: folder, GIT_INDEX_FILE: `${index}-wanted` };
      await git.must(root, [], { script: EXTRACT, deadlineMs: DEADLINE_MS, writable, env });
      return out;
    },
    /** Stores files unchanged, given by their paths in a folder of ours; returns their hashes. */
    async store(paths: readonly string[]): Promise<string[]> {
      note("wanted", paths.map((path) => `${path}\n`).join(""));
      const script = `exec ${GIT} hash-object -w --no-filters --stdin-paths <"$IO_DIR/wanted"`;
      return (await must([], { script })).split("\n").filter((oid) => oid !== "");
    },
    /** The git that compares kept trees, to make a diff for people. */
    reader: git.with({ env, writable }),
    /** Deletes the ref that keeps everything. */
    async forget(): Promise<void> {
      const script = `unset GIT_WORK_TREE GIT_OBJECT_DIRECTORY GIT_INDEX_FILE; GIT_DIR="$IO_REPOSITORY" exec ${GIT} update-ref -d "$IO_REF"`;
      await must([], { script });
    },
    /** Deletes the index, which is only needed while the work goes on. */
    dropIndex(): void {
      for (const name of ["", "-changes", "-wanted", ".lock"]) rmSync(`${index}${name}`, { force: true });
      rmSync(join(folder, "out"), { recursive: true, force: true });
    },
    isMade: () => entriesAt(realOf(own)).some(({ name }) => name === "HEAD"),
    hasIndex: () => entriesAt(realOf(folder)).some(({ name }) => name === basename(index)),
  };
}
export type ShadowIndex = ReturnType<typeof openShadowIndex>;

/** Parses the output of `git diff-tree --raw -z`. */
function changesIn(raw: string): Seen[] {
  const fields = raw.split("\0");
  const entryOf = (mode: string, oid: string): Entry | null => (/^0+$/.test(mode) ? null : { mode, oid });
  return fields.flatMap((header, at) => {
    if (!header.startsWith(":")) return [];
    const [oldMode = "", mode = "", oldOid = "", oid = ""] = header.slice(1).split(" ");
    return [{ path: fields[at + 1] ?? "", before: entryOf(oldMode, oldOid), after: entryOf(mode, oid) }];
  });
}

/**
 * The files that `git ls-files -v -z` marks as overlooked: a lower-case letter means "assume unchanged", an S "skip worktree",
 * which also marks absent files.
 */
async function overlookedIn(listed: string, root: string): Promise<string[]> {
  const breathe = createBreath();
  const paths: string[] = [];
  for (const line of listed.split("\0")) {
    await breathe();
    if (/^[a-zS] /.test(line) && lstatSync(join(root, line.slice(2)), { throwIfNoEntry: false })) paths.push(line.slice(2));
  }
  return paths;
}

/** Parses sizes from `git ls-files --debug -z`: a zero byte ends each path, and five lines about it precede the next. */
function sizesIn(listed: string): Map<string, number> {
  const sizes = new Map<string, number>();
  const pieces = listed.split("\0");
  let path = pieces[0] ?? "";
  for (const piece of pieces.slice(1)) {
    const lines = piece.split("\n");
    const size = lines[4]?.trimStart();
    if (size?.startsWith("size: ")) sizes.set(path, Number.parseInt(size.slice("size: ".length), 10));
    path = lines.slice(5).join("\n");
  }
  return sizes;
}

/** Formats entries for `git update-index --index-info`. */
function info(entries: readonly (readonly [path: string, entry: Entry | null])[]): string {
  return entries.flatMap(([path, entry]) => (entry ? [`${entry.mode} ${entry.oid}\t${path}\0`] : [])).join("");
}

function makeIndex(folder: string, place: ChangedFolder): void {
  const { kind, gitDir, objects } = place;
  const own = join(folder, "git");
  const index = join(folder, "index");
  const repository = dirname(objects);
  for (const name of ["refs", "info", "objects"]) mkdirSync(join(own, name), { recursive: true, mode: 0o700 });
  const isSha256 = place.hash === "sha256";
  const config = [
    `[core]\n\trepositoryformatversion = ${isSha256 ? 1 : 0}\n\tbare = false\n\tfilemode = ${place.fileMode}\n`,
    ...(isSha256 ? ["[extensions]\n\tobjectformat = sha256\n"] : []),
  ];
  const excludes = kind === "git" ? (smallTextAt(join(repository, "info", "exclude"), 200_000) ?? "") : PLAIN_EXCLUDES;
  withFolder(realOf(own), (held) => {
    replaceFile(held, "HEAD", "ref: refs/heads/none\n", { durable: false });
    replaceFile(held, "config", config.join(""), { durable: false });
  });
  withFolder(realOf(join(own, "info")), (held) => {
    replaceFile(held, "attributes", ATTRIBUTES, { durable: false });
    replaceFile(held, "exclude", excludes, { durable: false });
  });
  rmSync(index, { force: true });
  rmSync(`${index}.lock`, { force: true });
  if (kind !== "git") return;
  copyPlainAt(join(realOf(gitDir), "index"), join(realOf(folder), "index"), MAX_INDEX_BYTES, { keepTime: true });
  for (const { name } of entriesAt(realOf(gitDir)))
    if (name.startsWith("sharedindex.")) copyPlainAt(join(realOf(gitDir), name), join(realOf(own), name), MAX_INDEX_BYTES);
}

function said({ ending, stderr, output }: ExecResult): string {
  return (
    (ending === "exited" ? stderr.trim() || output.trim() : ending === "not-started" ? stderr : ending).slice(-300) ||
    "git failed"
  );
}
