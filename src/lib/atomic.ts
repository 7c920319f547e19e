import { basename, dirname } from "node:path";
import { withFolder } from "./pinned/folder.ts";
import { replaceFile } from "./pinned/write.ts";
import { realOf } from "./real-path.ts";

/** Atomically replaces the file at a path that may contain links. Only for IO's own folders, or for checked paths. */
export function writeFileAtomic(path: string, content: string | Uint8Array, mode = 0o600): void {
  withFolder(realOf(dirname(path)), (folder) => replaceFile(folder, basename(path), content, { mode }));
}
