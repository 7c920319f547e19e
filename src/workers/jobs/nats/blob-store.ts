import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { UserError } from "../../../lib/errors.ts";
import { readPlainAt } from "../../../lib/pinned/read.ts";
import type { BlobRef, Blobs } from "../port.ts";

/** The largest blob; a larger repository needs another way to travel. */
export const MAX_BYTES = 512 * 1024 * 1024;
/** The most that one attempt may upload. */
const MAX_SENT = 2 * MAX_BYTES;
const MAX_FILES = 10_000;
/** Blobs travel in pieces of this size; servers accept messages of a million bytes by default. */
export const PIECE = 512 * 1024;
const KEPT_MS = 7 * 86_400_000;

/** The daemon's files that travel with jobs, one folder per lease. */
export function createBlobStore(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const sent = new Map<string, number>();
  const folderOf = (lease: string) => join(folder, nameOf(lease));
  const fileOf = (lease: string, name: string) => join(folderOf(lease), nameOf(name));
  prune(folder);

  function make(lease: string): void {
    mkdirSync(folderOf(lease), { recursive: true, mode: 0o700 });
  }

  return {
    /** Stores a piece that a worker uploads; returns how many bytes are stored now. */
    add(lease: string, name: string, at: number, bytes: Uint8Array): number {
      make(lease);
      const file = fileOf(lease, name);
      const total = (sent.get(lease) ?? 0) + bytes.length;
      const isFull = !existsSync(file) && readdirSync(folderOf(lease)).length >= MAX_FILES;
      if (at + bytes.length > MAX_BYTES || total > MAX_SENT || isFull) throw new UserError("A worker sends more than a job may.");
      const handle = openSync(file, at === 0 ? "w" : "a", 0o600);
      try {
        const have = fstatSync(handle).size;
        if (have !== at) return have;
        for (let written = 0; written < bytes.length; ) written += writeSync(handle, bytes, written);
        sent.set(lease, total);
        return have + bytes.length;
      } finally {
        closeSync(handle);
      }
    },
    /** Reads a piece for a worker, with the size of the whole blob; undefined if there is no such blob. */
    piece(lease: string, name: string, at: number): { bytes: Uint8Array; size: number } | undefined {
      if (!existsSync(fileOf(lease, name))) return undefined;
      const handle = openSync(fileOf(lease, name), "r");
      try {
        const { size } = fstatSync(handle);
        const bytes = Buffer.alloc(Math.max(0, Math.min(PIECE, size - at)));
        readSync(handle, bytes, 0, bytes.length, at);
        return { bytes, size };
      } finally {
        closeSync(handle);
      }
    },
    /** The daemon's own view of a lease's blobs. */
    of: (lease: string): Blobs => ({
      async put(name, bytes) {
        refuseLarge(bytes);
        make(lease);
        const handle = openSync(fileOf(lease, name), "w", 0o600);
        try {
          for (let written = 0; written < bytes.length; ) written += writeSync(handle, bytes, written);
        } finally {
          closeSync(handle);
        }
        return refOf(name, bytes);
      },
      async get(ref) {
        const read = readPlainAt(fileOf(lease, ref.name), MAX_BYTES);
        return checked(ref, "absent" in read ? undefined : read.bytes);
      },
    }),
    /** Deletes everything of a lease. */
    clear(lease: string): void {
      sent.delete(lease);
      rmSync(folderOf(lease), { recursive: true, force: true });
    },
  };
}
export type BlobStore = ReturnType<typeof createBlobStore>;

export function refuseLarge({ length }: Uint8Array): void {
  if (length > MAX_BYTES)
    throw new UserError(`${length} bytes are more than can be sent to or by a worker (${MAX_BYTES}). Do this work locally.`);
}

export const refOf = (name: string, bytes: Uint8Array): BlobRef => ({ name, sha256: hashOf(bytes), size: bytes.length });

/** Returns the bytes if they match the reference; throws otherwise. */
export function checked({ sha256, size }: BlobRef, bytes: Uint8Array | undefined): Uint8Array {
  if (!bytes || bytes.length !== size || hashOf(bytes) !== sha256)
    throw new UserError("What arrived is not what was sent: the bytes do not have the hash that the record names.");
  return bytes;
}

/** Workers choose the names, so only a hash becomes a file name. */
const nameOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 40);
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Deletes what an earlier daemon left behind. */
function prune(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}
