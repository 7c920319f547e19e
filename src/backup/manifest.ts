import { z } from "zod";

/** The top folder of an archive, so that a backup unpacked by hand stays together. */
export const ROOT = "io-backup";
/** The last entry: lists the archive's content, so that anything missing, added or changed is noticed. */
export const MANIFEST = `${ROOT}/manifest.json`;

export const Manifest = z.strictObject({
  format: z.literal("io-backup/1"),
  io: z.string(),
  createdAt: z.string(),
  home: z.string(),
  /** The SHA-256 of each file's content, or of a link's target, with its mode. */
  entries: z.record(z.string(), z.strictObject({ sha256: z.string(), mode: z.number().int() })),
});
export type Manifest = z.infer<typeof Manifest>;

/** What belongs to a process and not to the home, or is regenerated from the rest. */
export function isLeftOut(path: string): boolean {
  return /^(?:daemon\.(?:json|lock)(?:-journal|-wal|-shm)?|io\.db(?:-wal|-shm|-journal)?|(?:scratch|\.restore|runtime|compiled|installed)(?:\/.*)?|wiki\/\.index\.db.*|sessions\/runtime-\d+\.pid|cluster\/(?:data(?:\/.*)?|nats-server\.pid))$/.test(
    path,
  );
}
