import { z } from "zod";
import { ModelTier } from "./squads.ts";

export const LanguageShare = z.object({
  name: z.string(),
  files: z.number().int(),
  lines: z.number().int(),
  /** The share of all lines of code, from 0 to 1. */
  share: z.number(),
});
export type LanguageShare = z.infer<typeof LanguageShare>;

export const ProjectPackage = z.object({
  /** The folder, relative to the project; "." is the project itself. */
  path: z.string(),
  name: z.string(),
  kind: z.string(),
  frameworks: z.array(z.string()),
});
export type ProjectPackage = z.infer<typeof ProjectPackage>;

export const ProjectCommand = z.object({
  purpose: z.enum(["test", "lint", "build"]),
  /** A shell command of plain words, at most joined by `&&`, without variables, pipes and redirects. */
  command: z.string(),
  /** Its working folder, relative to the project. */
  cwd: z.string(),
  /** The file that contains the command, or shows that the project uses it. */
  from: z.string(),
  /** Set if no file of the project names the command: it is what such projects usually use. */
  isGuess: z.literal(true).optional(),
});
export type ProjectCommand = z.infer<typeof ProjectCommand>;

export const SuggestedAgent = z.object({ roleTitle: z.string(), charter: z.string(), modelTier: ModelTier, reason: z.string() });
export type SuggestedAgent = z.infer<typeof SuggestedAgent>;

/** What a project consists of, as read from its files. */
export const Analysis = z
  .object({
    projectPath: z.string(),
    /** Whether git listed the files and thus left ignored ones out. */
    source: z.enum(["git", "folder"]),
    size: z.object({ files: z.number().int(), codeFiles: z.number().int(), lines: z.number().int(), bytes: z.number().int() }),
    languages: z.array(LanguageShare),
    documents: z.array(z.object({ name: z.string(), files: z.number().int(), lines: z.number().int() })),
    monorepo: z.string().nullable(),
    packages: z.array(ProjectPackage),
    frameworks: z.array(z.string()),
    /** The package managers, if files name them. */
    packageManagers: z.array(z.string()),
    testTools: z.array(z.string()),
    /** The number of files whose names mark them as tests. */
    testFiles: z.number().int(),
    ci: z.array(z.string()),
    containers: z.array(z.string()),
    commands: z.array(ProjectCommand),
    problems: z.array(z.object({ file: z.string(), message: z.string() })),
    roster: z.array(SuggestedAgent),
  })
  .meta({ id: "Analysis" });
export type Analysis = z.infer<typeof Analysis>;
