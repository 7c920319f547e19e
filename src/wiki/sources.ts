import { join } from "node:path";
import { missing, UserError } from "../lib/errors.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { type IsSecret, MAX_PAGE_BYTES, readText, stampOf } from "./page-file.ts";
import { sourceName } from "./paths.ts";

export interface Source {
  name: string;
  bytes: number;
  updatedAt: string;
}

/** Raw texts that are not pages yet. Reading and writing sanitize names the same way. */
export interface Sources {
  list(): Source[];
  read(name: string): Source & { content: string };
  write(name: string, content: string): Source;
}

export function createSources(folder: string, isSecret: IsSecret, onWritten: (name: string, bytes: number) => void): Sources {
  const describe = (name: string): Source | undefined => {
    const stamp = stampOf(join(folder, name));
    return stamp && { name, bytes: Number(stamp.size), updatedAt: new Date(Number(stamp.mtimeNs / 1_000_000n)).toISOString() };
  };
  return {
    list: () =>
      entriesAt(folder)
        .map(({ name }) => name)
        .filter((name) => !name.startsWith("."))
        .sort()
        .flatMap((name) => describe(name) ?? []),
    read(given) {
      const name = sourceName(given);
      const source = describe(name);
      const content = source && readText(join(folder, name), isSecret);
      if (source === undefined || content === undefined)
        throw missing(`There is no source called "${name}". List them: io wiki source list`);
      return { ...source, content };
    },
    write(given, content) {
      const name = sourceName(given);
      const bytes = Buffer.byteLength(content);
      if (bytes > MAX_PAGE_BYTES)
        throw new UserError(`${name} would be ${bytes} bytes; a source holds at most ${MAX_PAGE_BYTES}.`, {
          trouble: "too large",
        });
      withFolder(folder, (open) => replaceFile(open, name, content));
      onWritten(name, bytes);
      return { name, bytes, updatedAt: describe(name)?.updatedAt ?? "" };
    },
  };
}
