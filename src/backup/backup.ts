import { createHash, randomBytes } from "node:crypto";
import {
  createReadStream,
  createWriteStream,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Paths } from "../home/paths.ts";
import { isAlive } from "../lib/alive.ts";
import { UserError, usageError } from "../lib/errors.ts";
import { withPath } from "../lib/file-errors.ts";
import { realOf } from "../lib/real-path.ts";
import { packageVersion } from "../lib/version.ts";
import type { Snapshot, SnapshotOptions } from "../store/snapshot.ts";
import { type Copied, createCopy } from "./copy.ts";
import { MANIFEST, type Manifest, ROOT } from "./manifest.ts";
import type { OnProgress } from "./progress.ts";
import { END_OF_TAR, headerOf, paddingOf } from "./tar.ts";

export interface BackupDeps {
  paths: Paths;
  file: string;
  /** Asks the owner of the database to copy it to a file, without blocking writers. */
  snapshot: (target: string, options: SnapshotOptions) => Promise<Snapshot>;
  signal?: AbortSignal;
  onProgress?: OnProgress | undefined;
  now?: () => Date;
}

export interface Backup {
  file: string;
  home: string;
  files: number;
  bytes: number;
  createdAt: string;
}

/** Where the copy is made, and who receives its progress. */
interface CopyOptions {
  staging: string;
  onProgress: OnProgress | undefined;
}

/** How often files and database are copied again because something began or ended in between. */
const MOST_ROUNDS = 6;

/** Packs the whole home into one file, in the state a crash would leave: a start from it finishes what was begun. */
export async function backUp({ paths, file, snapshot, signal, onProgress, now = () => new Date() }: BackupDeps): Promise<Backup> {
  const { home, target } = checkTarget(paths, file);
  const staging = makeStaging(paths.scratch);
  const part = join(dirname(target), `.${basename(target)}.${process.pid}.part`);
  const remove = () => {
    rmSync(staging, { recursive: true, force: true });
    rmSync(part, { force: true });
  };
  process.once("exit", remove);
  try {
    const createdAt = now().toISOString();
    const entries = await copyHome(paths, { staging, snapshot, onProgress });
    signal?.throwIfAborted();
    const manifest: Manifest = {
      format: "io-backup/1",
      io: packageVersion(),
      createdAt,
      home,
      entries: Object.fromEntries(entries.map(({ name, sha256, mode }) => [name, { sha256, mode }])),
    };
    const archive = Readable.from(archiveOf(entries, manifest, { staging, onProgress }));
    const options = signal ? { signal } : {};
    const output = createWriteStream(part, { mode: 0o600, flags: "wx", flush: true });
    await pipeline(archive, createGzip(), output, options).catch((error: unknown) => {
      throw withPath(error, target);
    });
    renameSync(part, target);
    return { file: target, home, files: entries.length, bytes: statSync(target).size, createdAt };
  } finally {
    process.off("exit", remove);
    remove();
  }
}

/** Refuses a file that a backup cannot be written to. */
export function checkTarget(paths: Pick<Paths, "home">, file: string): { home: string; target: string } {
  const home = realOf(paths.home);
  const target = resolve(file);
  if (!existsSync(home)) throw new UserError(`${home}: there is no data folder yet, so there is nothing to back up.`);
  const inHome = relative(home, realOf(target));
  if (inHome === "" || !(inHome.startsWith("..") || inHome.startsWith("/")))
    throw usageError(`${target}: lies in the data folder that is to be backed up. Name a file outside of ${home}.`);
  const there = lstatSync(target, { throwIfNoEntry: false });
  if (there && !there.isFile()) throw usageError(`${target}: is not a file that could be replaced. Name another one.`);
  return { home, target };
}

/** Creates a folder that no command sees, and removes those that killed backups left. */
function makeStaging(scratch: string): string {
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(scratch)) {
    const owner = /^backup-(\d+)-/.exec(name)?.[1];
    if (owner !== undefined && !isAlive(Number(owner))) rmSync(join(scratch, name), { recursive: true, force: true });
  }
  const folder = join(realOf(scratch), `backup-${process.pid}-${randomBytes(4).toString("hex")}`);
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

/**
 * Copies everything twice while others work, so that little is left. Then copies the files that changed and after them the
 * database, until nothing began or ended in between. If work never pauses, the last database copy treats the outcome of running
 * effects as unknown, as after a crash.
 */
async function copyHome(
  { home, database }: Paths,
  { staging, snapshot, onProgress }: CopyOptions & Pick<BackupDeps, "snapshot">,
): Promise<Copied[]> {
  const copy = createCopy({ home: realOf(home), staging, onProgress });
  copy.pass();
  copy.pass();
  const own = join(staging, "io.db");
  for (let round = 1; existsSync(database); round += 1) {
    const since = new Date().toISOString();
    copy.pass();
    const cutOff = round === MOST_ROUNDS;
    const { isQuiet } = await snapshot(own, { since, cutOff });
    if (isQuiet || cutOff) break;
  }
  if (!existsSync(own)) return copy.entries();
  const size = statSync(own).size;
  return [...copy.entries(), { name: "io.db", type: "file", mode: 0o600, mtimeMs: Date.now(), size, sha256: "" }];
}

async function* archiveOf(
  entries: readonly Copied[],
  manifest: Manifest,
  { staging, onProgress }: CopyOptions,
): AsyncGenerator<Buffer> {
  const known = manifest.entries;
  let files = 0;
  let bytes = 0;
  for (const entry of entries) {
    yield headerOf({ ...entry, name: `${ROOT}/${entry.name}` });
    if (entry.type !== "file") continue;
    const hash = createHash("sha256");
    for await (const part of createReadStream(join(staging, entry.name))) {
      hash.update(part);
      bytes += part.length;
      onProgress?.({ step: "packing", files, bytes });
      yield part;
    }
    files += 1;
    yield paddingOf(entry.size);
    known[entry.name] = { sha256: hash.digest("hex"), mode: entry.mode };
  }
  const text = Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`);
  yield headerOf({ name: MANIFEST, type: "file", mode: 0o600, mtimeMs: Date.now(), size: text.length });
  yield text;
  yield paddingOf(text.length);
  yield END_OF_TAR;
}
