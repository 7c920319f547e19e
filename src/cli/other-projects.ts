import { existsSync } from "node:fs";
import { resolve } from "node:path";

export const WITH_OPTION = [
  "--with <project>",
  "change another project too, as one piece of work: its folder, or a squad's slug (can be repeated)",
  (name: string, before: string[] = []) => [...before, name],
] as const;

/** Another project for the daemon: a folder by its absolute path, anything else by its name. */
export function otherProject(name: string): string {
  const folder = resolve(name);
  return existsSync(folder) || name.includes("/") || name.startsWith(".") ? folder : name;
}
