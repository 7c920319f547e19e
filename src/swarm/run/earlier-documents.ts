import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fits } from "../../lib/glob.ts";
import { isFolder } from "../../lib/is-folder.ts";
import { makeFolder, withFolder } from "../../lib/pinned/folder.ts";
import { entriesOf } from "../../lib/pinned/list.ts";
import { readPlain, readPlainAt } from "../../lib/pinned/read.ts";
import { createFile, removeFile } from "../../lib/pinned/write.ts";
import { realOf } from "../../lib/real-path.ts";

export interface EarlierDocumentsDeps {
  projectPath: string;
  docDir: string;
  /** The folders of the project's earlier runs, which keep copies of what they wrote. */
  earlier: readonly string[];
  /** The run's own folder. */
  folder: string;
  /** What the run will write; `*` matches anything. */
  written: readonly string[];
}

const MOST_BYTES = 10_000_000;

export interface ClearedDocuments {
  /** How many documents of earlier runs were removed. */
  cleared: number;
  /** A line for each of the user's documents that the run will overwrite. */
  notes: string[];
}

/**
 * Removes the documents of earlier runs from the documents folder if they are still byte for byte as those runs wrote them, and
 * keeps a copy of anything else that the run would overwrite.
 */
export function clearEarlier({ projectPath, docDir, earlier, folder, written }: EarlierDocumentsDeps): ClearedDocuments {
  const path = realOf(join(projectPath, docDir));
  if (!isFolder(path)) return { cleared: 0, notes: [] };
  let cleared = 0;
  const copies = earlier.map((each) => join(realOf(each), "documents")).filter((each) => existsSync(each));
  const known = new Set(copies.flatMap((each) => readdirSync(each)));
  const notes = withFolder(path, (open) =>
    entriesOf(open).flatMap(({ name }) => {
      const isWritten = written.some((pattern) => fits(pattern, name));
      if (!known.has(name) && !isWritten) return [];
      const now = readPlain(open, name, MOST_BYTES);
      if ("absent" in now) return [];
      const isCopy = (each: string) => {
        const copy = readPlainAt(join(each, name), MOST_BYTES);
        return "bytes" in copy && copy.bytes.equals(now.bytes);
      };
      if (copies.some(isCopy)) cleared += Number(removeFile(open, name));
      else if (isWritten) return [keep(folder, name, now.bytes, join(docDir, name))];
      return [];
    }),
  );
  return { cleared, notes };
}

function keep(folder: string, name: string, bytes: Uint8Array, shown: string): string {
  const kept = makeFolder(join(realOf(folder), "earlier"));
  try {
    if (!existsSync(kept.entry(name))) createFile(kept, name, bytes);
    return `${shown} was there before this run wrote it; as it was it is kept in ${join(kept.path, name)}`;
  } finally {
    kept.close();
  }
}
