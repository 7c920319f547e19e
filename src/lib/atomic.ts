import { basename, dirname } from "node:path";
import { withFolder } from "./pinned/folder.ts";
import { replaceFile } from "./pinned/write.ts";
import { realOf } from "./real-path.ts";

/** Replaces a file of a folder that is IO's own, or that was judged already, by a path that may pass links. */
export function writeFileAtomic(path: string, content: string | Uint8Array, mode = 0o600): void {
  withFolder(realOf(dirname(path)), (folder) => replaceFile(folder, basename(path), content, { mode }));
}
