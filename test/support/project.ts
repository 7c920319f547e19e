import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Analysis } from "../../src/protocol/analysis.ts";
import { temporaryFolder } from "./home.ts";

/** Creates a folder with these files. Returns its real path. */
export function projectOf(files: Readonly<Record<string, string>>): string {
  const root = realpathSync(temporaryFolder());
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** The commands of an analysis, one per line: purpose, folder, command, and whether it is a guess. */
export const commandLines = ({ commands }: Pick<Analysis, "commands">): string[] =>
  commands.map(({ purpose, command, cwd, isGuess }) => `${purpose} ${cwd} ${command}${isGuess ? " (guess)" : ""}`);
