import { z } from "zod";
import { ModelTier } from "./squads.ts";

export const LanguageShare = z.object({
  name: z.string(),
  files: z.number().int(),
  lines: z.number().int(),
  /** Of all lines of code, from 0 to 1. */
  share: z.number(),
});
export type LanguageShare = z.infer<typeof LanguageShare>;

export const ProjectPackage = z.object({
  /** The folder, relative to the project; "." is the project's own. */
  path: z.string(),
  name: z.string(),
  kind: z.string(),
  frameworks: z.array(z.string()),
});
export type ProjectPackage = z.infer<typeof ProjectPackage>;

export const ProjectCommand = z.object({
  purpose: z.enum(["test", "lint", "build"]),
  /** A line for a shell: plain words, at most joined by `&&`, without variables, pipes and redirects. */
  command: z.string(),
  /** The folder it stands in, relative to the project. */
  cwd: z.string(),
  /** The file in which it was found, or which shows it to be the project's own. */
  from: z.string(),
  /** Set when no file of the project names it: what such a project is usually checked with. */
  isGuess: z.literal(true).optional(),
});
export type ProjectCommand = z.infer<typeof ProjectCommand>;

export const SuggestedAgent = z.object({ roleTitle: z.string(), charter: z.string(), modelTier: ModelTier, reason: z.string() });
export type SuggestedAgent = z.infer<typeof SuggestedAgent>;

/** What a project is made of, read from its files. */
export const Analysis = z
  .object({
    projectPath: z.string(),
    /** Whether git named the files, and so what it ignores was left out. */
    source: z.enum(["git", "folder"]),
    size: z.object({ files: z.number().int(), codeFiles: z.number().int(), lines: z.number().int(), bytes: z.number().int() }),
    languages: z.array(LanguageShare),
    documents: z.array(z.object({ name: z.string(), files: z.number().int(), lines: z.number().int() })),
    monorepo: z.string().nullable(),
    packages: z.array(ProjectPackage),
    frameworks: z.array(z.string()),
    /** What installs the packages, where a file says so. */
    packageManagers: z.array(z.string()),
    testTools: z.array(z.string()),
    /** How many files are tests by their names. */
    testFiles: z.number().int(),
    ci: z.array(z.string()),
    containers: z.array(z.string()),
    commands: z.array(ProjectCommand),
    problems: z.array(z.object({ file: z.string(), message: z.string() })),
    roster: z.array(SuggestedAgent),
  })
  .meta({ id: "Analysis" });
export type Analysis = z.infer<typeof Analysis>;
