import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { pictureTypeOf } from "../../lib/file-type.ts";
import type { Picture } from "../wire/dialect.ts";
import { sessionLog } from "./recover.ts";

/** A picture's id within a session, derived from its bytes. */
export function pictureId(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}

/**
 * Pictures that a session's texts refer to, stored in the session's folder, so that they are deleted with it. The runtime
 * sees only the reference: its log, which is read whole after a crash, stays small.
 */
export function createPictureShelf(folder: string) {
  const placeOf = (session: string) => join(dirname(sessionLog(folder, session)), "pictures");
  return {
    /** The picture is on disk when this resolves. */
    async keep(session: string, bytes: Uint8Array): Promise<string> {
      const id = pictureId(bytes);
      const place = placeOf(session);
      const half = join(place, `.${randomUUID()}`);
      await mkdir(place, { recursive: true, mode: 0o700 });
      try {
        await writeFile(half, bytes, { mode: 0o600, flush: true });
        await rename(half, join(place, id));
      } finally {
        await rm(half, { force: true });
      }
      return id;
    },
    async find(session: string, id: string): Promise<Picture | undefined> {
      const bytes = await readFile(join(placeOf(session), id)).catch((error: unknown) => {
        if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
        throw error;
      });
      const type = bytes && pictureTypeOf(bytes);
      return bytes && type ? { id, type, data: bytes.toString("base64") } : undefined;
    },
  };
}
export type PictureShelf = ReturnType<typeof createPictureShelf>;
