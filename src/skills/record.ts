import { join } from "node:path";
import { z } from "zod";
import { readPlainAt } from "../lib/pinned/read.ts";
import { SkillWarning } from "../protocol/skills.ts";

/** What an installation leaves beside a skill's own files. Whether the skill is on is kept in the database. */
const SkillRecord = z.object({
  url: z.string().nullable(),
  commit: z.string().nullable(),
  installedAt: z.string().nullable(),
  /** Read once, in homes of a version that kept the switch here; always false since. */
  enabled: z.boolean(),
  warnings: z.array(SkillWarning),
});
type SkillRecord = z.infer<typeof SkillRecord>;

export const RECORD = ".io-skill.json";
const MAX_BYTES = 1_000_000;
const UNKNOWN = { url: null, commit: null, installedAt: null, warnings: [] };

/** What is known of a skill in the skills folder; nothing of a linked one, which is somebody else's folder. */
export function readRecord(folder: string, linked: boolean): Omit<SkillRecord, "enabled"> {
  const { enabled: _, ...record } = linked ? { ...UNKNOWN, enabled: false } : recordAt(join(folder, RECORD));
  return record;
}

/** Whether the version that kept the switch beside the skills called a skill on: also one that was put there by hand. */
export function wasOn(root: string, slug: string, linked: boolean): boolean {
  return recordAt(linked ? join(root, `.${slug}${RECORD}`) : join(root, slug, RECORD)).enabled;
}

/** A record as it is written beside a skill. */
export function recordText(record: Omit<SkillRecord, "enabled">): string {
  return `${JSON.stringify({ ...record, enabled: false }, null, 2)}\n`;
}

function recordAt(path: string): SkillRecord {
  const read = readPlainAt(path, MAX_BYTES);
  if ("absent" in read) return { ...UNKNOWN, enabled: read.absent === "missing" };
  try {
    const record = SkillRecord.safeParse(JSON.parse(read.bytes.toString("utf8")));
    return record.success ? record.data : { ...UNKNOWN, enabled: false };
  } catch {
    // Not JSON, so nobody can say that a person switched it on.
    return { ...UNKNOWN, enabled: false };
  }
}
