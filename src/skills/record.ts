import { join } from "node:path";
import { z } from "zod";
import { readPlainAt } from "../lib/pinned/read.ts";
import { SkillWarning } from "../protocol/skills.ts";

/** What an installation records beside a skill's own files. The database records whether the skill is on. */
const SkillRecord = z.object({
  url: z.string().nullable(),
  commit: z.string().nullable(),
  installedAt: z.string().nullable(),
  /** Only read once, in homes of a version that kept the switch here; always false since. */
  enabled: z.boolean(),
  warnings: z.array(SkillWarning),
});
type SkillRecord = z.infer<typeof SkillRecord>;

export const RECORD = ".io-skill.json";
const MAX_BYTES = 1_000_000;
const UNKNOWN = { url: null, commit: null, installedAt: null, warnings: [] };

/** The record of an installed skill; empty for a linked one, which is somebody else's folder. */
export function readRecord(folder: string, linked: boolean): Omit<SkillRecord, "enabled"> {
  const { enabled: _, ...record } = linked ? { ...UNKNOWN, enabled: false } : recordAt(join(folder, RECORD));
  return record;
}

/** Whether the version that kept the switch beside the skills had a skill on: also one that was added by hand. */
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
    // Not JSON, so nothing shows that a person switched it on.
    return { ...UNKNOWN, enabled: false };
  }
}
