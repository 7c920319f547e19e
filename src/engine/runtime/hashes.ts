import { createHash } from "node:crypto";
import { createReadStream, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { writeFileAtomic } from "../../lib/atomic.ts";

const RECORD = "hashes.json";

/** For each file name: the hash of its content, and stat values that change when the file does. */
const Hashes = z.record(z.string(), z.strictObject({ sha256: z.string(), stamp: z.string() }));
type Hashes = z.infer<typeof Hashes>;

/** Records the hashes of a folder's files inside it. */
export async function recordHashes(folder: string): Promise<void> {
  const hashes: Hashes = {};
  for (const name of filesIn(folder)) {
    const file = join(folder, name);
    hashes[name] = { stamp: stampOf(file), sha256: await hashOf(file) };
  }
  writeRecord(folder, hashes);
}

/**
 * Whether a folder contains exactly the recorded files. A file is hashed again only if its inode, size or times changed since
 * the last check. No command may be able to write the folder, since the record is inside it.
 */
export async function isUnchanged(folder: string): Promise<boolean> {
  const recorded = readRecord(folder);
  if (recorded === undefined) return false;
  try {
    const names = filesIn(folder);
    if (names.length !== Object.keys(recorded).length) return false;
    const fresh: Hashes = {};
    for (const name of names) {
      const [known, file] = [recorded[name], join(folder, name)];
      const stamp = stampOf(file);
      if (known?.stamp !== stamp && (await hashOf(file)) !== known?.sha256) return false;
      fresh[name] = { sha256: known.sha256, stamp };
    }
    if (names.some((name) => fresh[name]?.stamp !== recorded[name]?.stamp)) writeRecord(folder, fresh);
  } catch {
    // A missing or unreadable file could not be started either.
    return false;
  }
  return true;
}

const filesIn = (folder: string): string[] => readdirSync(folder).filter((name) => name !== RECORD);

/** Stat values that change when a file is replaced or written. */
export function stampOf(file: string): string {
  const { dev, ino, size, mtimeNs, ctimeNs, mode } = statSync(file, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs, mode].join(" ");
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}

function readRecord(folder: string): Hashes | undefined {
  try {
    return Hashes.safeParse(JSON.parse(readFileSync(join(folder, RECORD), "utf8"))).data;
  } catch {
    // There is no record, or it is incomplete.
    return undefined;
  }
}

function writeRecord(folder: string, hashes: Hashes): void {
  try {
    writeFileAtomic(join(folder, RECORD), `${JSON.stringify(hashes)}\n`, 0o644);
  } catch {
    // Not writable, such as a package that another user installed. Its files are hashed at every start.
  }
}
