import { z } from "zod";

/** Something in a skill's files that a person should look at before switching it on. */
export const SkillWarning = z
  .object({
    kind: z.enum(["download-and-run", "credentials", "not-checked"]),
    file: z.string(),
    line: z.number().int().nonnegative(),
    text: z.string(),
  })
  .meta({ id: "SkillWarning" });
export type SkillWarning = z.infer<typeof SkillWarning>;

/** A folder with a `SKILL.md`, and where it came from if it was installed from a repository. */
export const Skill = z
  .object({
    slug: z.string(),
    name: z.string(),
    description: z.string(),
    enabled: z.boolean(),
    /** It was switched on, and is off because its files are no longer what they were then. */
    changed: z.boolean(),
    /** Of everything in its folder; null if it cannot be switched on, and the warnings say why. */
    hash: z.string().nullable(),
    url: z.string().nullable(),
    commit: z.string().nullable(),
    installedAt: z.string().nullable(),
    warnings: z.array(SkillWarning),
  })
  .meta({ id: "Skill" });
export type Skill = z.infer<typeof Skill>;

/** A skill that the registry knows. */
export const FoundSkill = z
  .object({ name: z.string(), description: z.string(), url: z.string(), installs: z.number().optional() })
  .meta({ id: "FoundSkill" });
export type FoundSkill = z.infer<typeof FoundSkill>;
