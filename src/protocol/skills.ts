import { z } from "zod";

/** Something in a skill's files that a person should check before enabling it. */
export const SkillWarning = z
  .object({
    kind: z.enum(["download-and-run", "credentials", "not-checked"]),
    file: z.string(),
    line: z.number().int().nonnegative(),
    text: z.string(),
  })
  .meta({ id: "SkillWarning" });
export type SkillWarning = z.infer<typeof SkillWarning>;

/** A folder with a `SKILL.md`, and its repository if it was installed from one. */
export const Skill = z
  .object({
    slug: z.string(),
    name: z.string(),
    description: z.string(),
    enabled: z.boolean(),
    /** Whether it was enabled and is off because its files have changed since. */
    changed: z.boolean(),
    /** Hash of its folder; null if it cannot be enabled, which the warnings explain. */
    hash: z.string().nullable(),
    url: z.string().nullable(),
    commit: z.string().nullable(),
    installedAt: z.string().nullable(),
    warnings: z.array(SkillWarning),
  })
  .meta({ id: "Skill" });
export type Skill = z.infer<typeof Skill>;

/** A skill in the registry. */
export const FoundSkill = z
  .object({ name: z.string(), description: z.string(), url: z.string(), installs: z.number().optional() })
  .meta({ id: "FoundSkill" });
export type FoundSkill = z.infer<typeof FoundSkill>;
