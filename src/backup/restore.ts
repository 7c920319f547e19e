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
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createGunzip } from "node:zlib";
import { DatabaseSync } from "@photostructure/sqlite";
import { codeOf, conflict, messageOf, UserError, usageError } from "../lib/errors.ts";
import { fileError } from "../lib/file-errors.ts";
import type { Paths } from "../lib/paths.ts";
import { realOf } from "../lib/real-path.ts";
import { lockHolder } from "../store/lock.ts";
import { digest } from "./copy.ts";
import { asideAt, checkedAt, removeLeftovers, unpackingAt } from "./interrupted.ts";
import { isLeftOut, MANIFEST, Manifest, ROOT } from "./manifest.ts";
import type { OnProgress } from "./progress.ts";
import { damaged, readTar, type TarEntry } from "./tar.ts";

export interface RestoreDeps {
  paths: Paths;
  file: string;
  /** Puts what is in the home now aside. */
  replace: boolean;
  onProgress?: OnProgress | undefined;
  now?: () => Date;
}

export interface Restored {
  home: string;
  files: number;
  /** When, and of which home, the backup was made. */
  createdAt: string;
  from: string;
  /** Where what was in the home before is now. */
  aside: string | null;
}

const MOST_MANIFEST = 500_000_000;

/** Whether there is something in a home that a restore would take the place of. */
export function holdsSomething({ home }: Paths): boolean {
  return existsSync(home) && readdirSync(home).length > 0;
}

/** Makes a home of a backup: beside it first, checked to the last byte, and then in its place in one step. */
export async function restore({ paths, file, replace, onProgress, now = () => new Date() }: RestoreDeps): Promise<Restored> {
  const home = realOf(paths.home);
  refuseUsed(paths);
  if (holdsSomething(paths) && !replace)
    throw conflict(
      `${home} is not empty. With --yes it is put aside and the backup takes its place; or set IO_HOME to another folder.`,
    );
  removeLeftovers(home);
  const [staging, checked] = [unpackingAt(home), checkedAt(home)];
  const remove = () => {
    for (const path of [staging, checked]) rmSync(path, { recursive: true, force: true });
  };
  process.once("exit", remove);
  try {
    mkdirSync(dirname(home), { recursive: true, mode: 0o700 });
    mkdirSync(staging, { mode: 0o700 });
    const manifest = await unpack(resolve(file), staging, onProgress);
    refuseUsed(paths);
    const aside = holdsSomething(paths) ? asideAt(home, now()) : null;
    renameSync(staging, checked);
    move(home, checked, aside);
    return { home, files: Object.keys(manifest.entries).length, createdAt: manifest.createdAt, from: manifest.home, aside };
  } finally {
    process.off("exit", remove);
    remove();
  }
}

function refuseUsed(paths: Paths): void {
  const holder = lockHolder(paths.lock);
  if (holder)
    throw conflict(`A daemon${holder.pid ? ` (pid ${holder.pid})` : ""} runs on ${paths.home}. Stop it first with "io stop".`);
  if (isOpen(paths.database)) throw conflict(`Another program, such as a swarm run, works on ${paths.home}. Let it end first.`);
}

/** Whether somebody has a database open: only then can nobody have it alone. */
function isOpen(database: string): boolean {
  if (!existsSync(database)) return false;
  let db: InstanceType<typeof DatabaseSync> | undefined;
  try {
    db = new DatabaseSync(database);
    db.exec("PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; ROLLBACK");
    return false;
  } catch (error) {
    // A file that is damaged is nobody's.
    return /locked|busy/i.test(messageOf(error));
  } finally {
    db?.close();
  }
}

async function unpack(file: string, staging: string, onProgress: OnProgress | undefined): Promise<Manifest> {
  const found: Manifest["entries"] = {};
  const links: { path: string; target: string }[] = [];
  let manifest: Manifest | undefined;
  let files = 0;
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
      if (path in found) throw damaged();
      if (entry.type === "link") links.push({ path, target: entry.target ?? "" });
      found[path] = { mode: entry.mode, sha256: await put(entry, body, join(staging, path)) };
      files += 1;
      bytes += entry.size;
      onProgress?.({ step: "unpacking", files, bytes });
    }
  } catch (error) {
    throw explained(error, file);
  }
  if (!manifest || !isSame(found, manifest.entries)) throw explained(damaged(), file);
  // Links come last, so that nothing is ever written through one.
  for (const { path, target } of links) {
    mkdirSync(dirname(join(staging, path)), { recursive: true, mode: 0o700 });
    symlinkSync(target, join(staging, path));
  }
  return manifest;
}

/** Writes one entry and says what its content comes to. */
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
  if (!isPlain || (isLeftOut(path) && path !== "io.db")) throw damaged();
  return path;
}

function isSame(found: Manifest["entries"], told: Manifest["entries"]): boolean {
  const names = Object.keys(told);
  if (names.length !== Object.keys(found).length) return false;
  return names.every((name) => found[name]?.sha256 === told[name]!.sha256 && found[name]?.mode === told[name]!.mode);
}

function explained(error: unknown, file: string): UserError {
  if (codeOf(error) === "ENOENT" || codeOf(error) === "EISDIR")
    return usageError(`${file}: there is no such file. Nothing was restored.`, error);
  const known = fileError(error);
  if (known) return known;
  const why = error instanceof UserError ? error.message : damaged().message;
  return new UserError(`${file}: ${why}`, { cause: error });
}

/**
 * An empty folder gives way to a rename by itself, so that there is no moment without a home. A kill between the two steps of
 * one that is not empty is mended by the next command (`finishRestore`).
 */
function move(home: string, checked: string, aside: string | null): void {
  try {
    if (aside !== null) renameSync(home, aside);
    renameSync(checked, home);
  } catch (error) {
    if (aside !== null && !existsSync(home) && existsSync(aside)) renameSync(aside, home);
    throw new UserError(
      `${home} cannot be replaced (${codeOf(error) ?? messageOf(error)}): it may be a place where a disk is mounted. Set IO_HOME to a folder within it.`,
      { cause: error },
    );
  }
}
