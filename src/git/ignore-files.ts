import { dirname } from "node:path";

/** Translates an `.ignore` file, which git does not read, into exclude patterns. */
export function asExcludes(file: string, text: string): string[] {
  const folder = dirname(file);
  const below = folder === "." ? "" : `/${folder.replace(/[\\*?[]/g, "\\$&")}`;
  return text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, not = "", pattern = ""] = /^(!?)(.*)$/s.exec(line) ?? [];
      const isAnchored = pattern.replace(/\/$/, "").includes("/");
      return `${not}${below}/${isAnchored ? "" : "**/"}${pattern.replace(/^\//, "")}`;
    });
}
