import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { openStore } from "../../src/store/open.ts";
import type { Writes } from "../../src/tools/tool.ts";
import { createUndo } from "../../src/undo/undo.ts";
import { testGit } from "./git.ts";
import { type AtTheEnd, temporaryFolder } from "./home.ts";
import { quietLog } from "./swarm/quiet.ts";

const COMMITTER = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"];

/** A project, a data folder, and the undo store with its snapshots. */
export function createUndoBench({ isRepository = true, keep = 1_000 } = {}, atTheEnd?: AtTheEnd) {
  const top = realpathSync(temporaryFolder(atTheEnd));
  const root = join(top, "project");
  const home = join(top, "home");
  for (const folder of [root, home]) mkdirSync(folder);
  const git = (...args: string[]) =>
    execFileSync("git", [...COMMITTER, ...args], { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  if (isRepository) git("init", "-q", "-b", "main");
  const store = openStore(join(home, "io.db"));
  atTheEnd?.(() => store.close());
  const runner = testGit({ home });
  const open = () => createUndo({ store, git: runner, folder: join(home, "undo"), home, log: quietLog, keep });
  const undo = open();
  let count = 0;

  const at = (path: string) => join(root, path);
  const bench = {
    top,
    root,
    home,
    git,
    store,
    undo,
    /** Opens the undo store again, as after a restart. */
    reopened: open,
    at,
    write(files: Record<string, string | Buffer>): void {
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(at(path)), { recursive: true });
        writeFileSync(at(path), content);
      }
    },
    commit(files: Record<string, string | Buffer> = {}): void {
      bench.write(files);
      git("add", "-A");
      git("commit", "-q", "--allow-empty", "-m", "state");
    },
    read: (path: string) => readFileSync(at(path), "utf8"),
    remove: (path: string) => rmSync(at(path), { recursive: true }),
    chmod: (path: string, mode: number) => chmodSync(at(path), mode),
    newOwner(kind: "m" | "t" = "m"): string {
      count += 1;
      return `${kind}_test${count}`;
    },
    /** Runs `work` like a command in the folder, or like an edit of exactly these paths. */
    async effect(owner: string, work: () => void | Promise<void>, writes: Writes = { paths: ["."], below: true }, cwd = root) {
      const end = await undo.before(owner, writes, { cwd });
      await work();
      end();
    },
    /** Runs `work` as the only effect of a new message. Returns the message's id. */
    async turn(work: () => void | Promise<void>, writes?: Writes): Promise<string> {
      const owner = bench.newOwner();
      await bench.effect(owner, work, writes);
      return owner;
    },
    /** Every file with its bytes and permissions. Leaves out git's own folder. */
    picture: () => pictureOf(root),
    /** The user's own state in the repository, which IO must never change. */
    own: () => ({
      index: readFileSync(at(".git/index")).toString("base64"),
      head: readFileSync(at(".git/HEAD"), "utf8"),
      config: readFileSync(at(".git/config"), "utf8"),
      refs: git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash"),
      stash: git("stash", "list"),
      status: git("--no-optional-locks", "status", "--porcelain=v2", "--ignored"),
    }),
  };
  return bench;
}
export type UndoBench = ReturnType<typeof createUndoBench>;

export function pictureOf(folder: string, prefix = ""): Record<string, string> {
  return Object.assign(
    {},
    ...readdirSync(join(folder, prefix)).map((name) => {
      const path = prefix === "" ? name : `${prefix}/${name}`;
      if (name === ".git") return {};
      const stats = lstatSync(join(folder, path));
      if (stats.isDirectory()) return pictureOf(folder, path);
      const bytes = stats.isSymbolicLink()
        ? readlinkSync(join(folder, path))
        : readFileSync(join(folder, path)).toString("base64");
      return { [path]: `${stats.isSymbolicLink() ? "link" : (stats.mode & 0o777).toString(8)} ${bytes}` };
    }),
  );
}
