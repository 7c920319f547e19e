import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  createReadStream,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { createGunzip } from "node:zlib";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Paths } from "../home/paths.ts";
import { codeOf, conflict, messageOf, UserError, usageError } from "../lib/errors.ts";
import { fileError } from "../lib/file-errors.ts";
import { realOf } from "../lib/real-path.ts";
import { sizeText } from "../lib/size.ts";
import { isWithin } from "../lib/within.ts";
import { lockHolder } from "../store/lock.ts";
import { digest } from "./copy.ts";
import { finishRestore, removeLeftovers, replaceContents, unpackingBeside, unpackingWithin } from "./interrupted.ts";
import { isLeftOut, MANIFEST, Manifest, ROOT } from "./manifest.ts";
import type { OnProgress } from "./progress.ts";
import { damaged, readTar, type TarEntry } from "./tar.ts";

export interface RestoreDeps {
  paths: Paths;
  file: string;
  /** Moves the home's present content aside. */
  replace: boolean;
  onProgress?: OnProgress | undefined;
  now?: () => Date;
}

export interface Restored {
  home: string;
  files: number;
  /** When, and from which home, the backup was made. */
  createdAt: string;
  from: string;
  /** Where the home's previous content is now. */
  aside: string | null;
  /** Links of the backup that lead out of the home; nothing was written through them. */
  linksOutside: { path: string; target: string }[];
}

/** An unpacked entry of the archive. */
interface Unpacked {
  type: TarEntry["type"];
  mode: number;
  sha256: string;
}

const MOST_MANIFEST = 500_000_000;
const MOST_ENTRIES = 5_000_000;
const LONGEST_PATH = 4_096;

/** Whether a home has content that a restore would replace. */
export function hasContent({ home, runtime }: Paths): boolean {
  return existsSync(home) && readdirSync(home).some((name) => name !== basename(runtime));
}

/**
 * Restores a home from a backup: unpacks it elsewhere, checks every byte, then moves it into place. Without an existing home that
 * is one atomic step; existing content is exchanged entry by entry, and after a kill in between the next command finishes it
 * (`finishRestore`).
 */
export async function restore({ paths, file, replace, onProgress, now = () => new Date() }: RestoreDeps): Promise<Restored> {
  const home = realOf(paths.home);
  refuseUsed(paths);
  finishRestore(home);
  const isFull = hasContent(paths);
  if (isFull && !replace) throw notEmpty(home);
  removeLeftovers(home);
  const staging = isFull ? unpackingWithin(home) : unpackingBeside(home);
  const remove = () => rmSync(staging, { recursive: true, force: true });
  process.once("exit", remove);
  try {
    mkdirSync(dirname(staging), { recursive: true, mode: 0o700 });
    mkdirSync(staging, { mode: 0o700 });
    const { manifest, links } = await unpack(resolve(file), staging, onProgress);
    refuseUsed(paths);
    const aside = moveIntoPlace(paths, { home, staging: isFull ? undefined : staging, now });
    const linksOutside = links.filter(({ path, target }) => !isWithin(home, resolve(dirname(join(home, path)), target)));
    const { createdAt, home: from, entries } = manifest;
    return { home, files: Object.keys(entries).length, createdAt, from, aside, linksOutside };
  } finally {
    process.off("exit", remove);
    remove();
    removeLeftovers(home);
  }
}

const notEmpty = (home: string) =>
  conflict(`${home} is not empty. With --yes it is put aside and the backup takes its place; or set IO_HOME to another folder.`);

function refuseUsed(paths: Paths): void {
  const holder = lockHolder(paths.lock);
  if (holder)
    throw conflict(`A daemon${holder.pid ? ` (pid ${holder.pid})` : ""} runs on ${paths.home}. Stop it first with "io stop".`);
  if (isOpen(paths.database)) throw conflict(`Another program, such as a swarm run, works on ${paths.home}. Let it end first.`);
}

/** Whether another process has a database open: only then is exclusive access impossible. */
function isOpen(database: string): boolean {
  if (!existsSync(database)) return false;
  let db: InstanceType<typeof DatabaseSync> | undefined;
  try {
    db = new DatabaseSync(database);
    db.exec("PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; ROLLBACK");
    return false;
  } catch (error) {
    // Nobody uses a damaged file.
    return /locked|busy/i.test(messageOf(error));
  } finally {
    db?.close();
  }
}

interface Link {
  path: string;
  target: string;
}

async function unpack(
  file: string,
  staging: string,
  onProgress: OnProgress | undefined,
): Promise<{ manifest: Manifest; links: Link[] }> {
  const found = new Map<string, Unpacked>();
  const folders = new Set<string>();
  const links: Link[] = [];
  let manifest: Manifest | undefined;
  let bytes = 0;
  try {
    const plain = createReadStream(file)
      .on("error", (error) => plain.destroy(error))
      .pipe(createGunzip());
    for await (const { entry, body } of readTar(plain)) {
      if (manifest) throw damaged();
      if (entry.name === MANIFEST) {
        manifest = await readManifest(entry, body);
        continue;
      }
      const path = placeOf(entry.name);
      if (found.has(path) || found.size >= MOST_ENTRIES) throw damaged();
      // Only folders may have entries below them.
      for (const above of parentsOf(path)) {
        if ((found.get(above)?.type ?? "folder") !== "folder") throw damaged();
        folders.add(above);
      }
      if (entry.type !== "folder" && folders.has(path)) throw damaged();
      requireRoom(staging, entry.size);
      if (entry.type === "link") links.push({ path, target: entry.target ?? "" });
      found.set(path, { type: entry.type, mode: entry.mode, sha256: await put(entry, body, join(staging, path)) });
      bytes += entry.size;
      onProgress?.({ step: "unpacking", files: found.size, bytes });
    }
    if (!manifest || !isSame(found, manifest.entries)) throw damaged();
    // Links come last, and nothing is below one, so that nothing is ever written through them.
    for (const { path, target } of links) {
      mkdirSync(dirname(join(staging, path)), { recursive: true, mode: 0o700 });
      symlinkSync(target, join(staging, path));
    }
  } catch (error) {
    throw explained(error, file);
  }
  return { manifest, links };
}

/** An archive of a few kilobytes can unpack to any size. */
function requireRoom(folder: string, size: number): void {
  if (size < 1_000_000) return;
  const { bavail, bsize } = statfsSync(folder);
  if (size > bavail * bsize)
    throw new UserError(`It holds a file of ${sizeText(size)}, for which there is no room on the disk. Nothing was restored.`);
}

function parentsOf(path: string): string[] {
  const above = dirname(path);
  return above === "." ? [] : [above, ...parentsOf(above)];
}

/** Writes one entry and returns the hash of its content. */
async function put({ type, mode, mtimeMs, target = "" }: TarEntry, body: AsyncIterable<Buffer>, path: string): Promise<string> {
  if (type === "link") return digest(target);
  mkdirSync(type === "folder" ? path : dirname(path), { recursive: true, mode: 0o700 });
  if (type === "folder") return digest("");
  const hash = createHash("sha256");
  const file = openSync(path, "wx", 0o600);
  try {
    for await (const part of body) {
      hash.update(part);
      for (let at = 0; at < part.length; ) at += writeSync(file, part, at);
    }
  } finally {
    closeSync(file);
  }
  utimesSync(path, mtimeMs / 1000, mtimeMs / 1000);
  chmodSync(path, mode);
  return hash.digest("hex");
}

async function readManifest({ size }: TarEntry, body: AsyncIterable<Buffer>): Promise<Manifest> {
  if (size > MOST_MANIFEST) throw damaged();
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  const parsed = Manifest.safeParse(JSON.parse(Buffer.concat(parts).toString("utf8")));
  if (!parsed.success) throw damaged();
  return parsed.data;
}

/** The path in the home, for a name that leads nowhere else. */
function placeOf(name: string): string {
  const path = name.startsWith(`${ROOT}/`) ? name.slice(ROOT.length + 1) : "";
  const isPlain = path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !/[\0\\]/.test(part));
  if (!isPlain || Buffer.byteLength(path) > LONGEST_PATH || (isLeftOut(path) && path !== "io.db")) throw damaged();
  return path;
}

function isSame(found: ReadonlyMap<string, Unpacked>, told: Manifest["entries"]): boolean {
  const entries = Object.entries(told);
  if (entries.length !== found.size) return false;
  return entries.every(([name, { sha256, mode }]) => found.get(name)?.sha256 === sha256 && found.get(name)?.mode === mode);
}

function explained(error: unknown, file: string): UserError {
  if (codeOf(error) === "ENOENT" || codeOf(error) === "EISDIR")
    return usageError(`${file}: there is no such file. Nothing was restored.`, error);
  const known = fileError(error);
  if (known) return known;
  const why = error instanceof UserError ? error.message : damaged().message;
  return new UserError(`${file}: ${why}`, { cause: error });
}

/** Without `staging` the backup was unpacked inside the home. Returns where the previous content is now. */
function moveIntoPlace(
  paths: Paths,
  { home, staging, now }: { home: string; staging: string | undefined; now: () => Date },
): string | null {
  if (staging !== undefined && hasContent(paths)) throw notEmpty(home);
  try {
    if (staging === undefined) {
      chmodSync(home, 0o700);
      return replaceContents(home, now());
    }
    rmSync(paths.runtime, { recursive: true, force: true });
    // Renaming replaces an empty folder.
    renameSync(staging, home);
    return null;
  } catch (error) {
    throw new UserError(
      `${home} cannot be replaced (${codeOf(error) ?? messageOf(error)}): it may be a place where a disk is mounted. Set IO_HOME to a folder within it.`,
      { cause: error },
    );
  }
}
