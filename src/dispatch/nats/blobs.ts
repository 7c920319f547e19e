import { createHash } from "node:crypto";
import type { JetStreamClient } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { UserError } from "../../lib/errors.ts";
import type { Blobs } from "../port.ts";
import { bucketOf } from "./names.ts";

/** The most that a blob may be: more is a repository that wants another way. */
const MAX_BYTES = 512 * 1024 * 1024;

/** Bytes in the object store of a pool, known by their hash. */
export function createBlobs(js: JetStreamClient, pool: string): Blobs {
  const bucket = () => new Objm(js).open(bucketOf(pool), false);
  return {
    async put(name, bytes) {
      if (bytes.length > MAX_BYTES)
        throw new UserError(`${bytes.length} bytes are more than can be sent to a worker (${MAX_BYTES}). Do this work locally.`);
      await (await bucket()).putBlob({ name }, bytes);
      return { name, sha256: hashOf(bytes), size: bytes.length };
    },
    async remove(name) {
      await (await bucket()).delete(name).catch(() => undefined);
    },
    async get({ name, sha256, size }) {
      const bytes = await (await bucket()).getBlob(name);
      if (!bytes || bytes.length !== size || hashOf(bytes) !== sha256)
        throw new UserError("What arrived is not what was sent: the bytes do not have the hash that the record names.");
      return bytes;
    },
  };
}

const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
