import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";

export interface Document {
  /** Relative to the package root. */
  path: string;
  text: string;
}

/** The documents that people read: the README, the contributing guide, and everything in docs. */
export function documents(): Document[] {
  const below = readdirSync(join(packageRoot, "docs"), { recursive: true, encoding: "utf8" });
  const paths = [
    "README.md",
    "CONTRIBUTING.md",
    ...below.filter((name) => name.endsWith(".md")).map((name) => join("docs", name)),
  ];
  return paths.map((path) => ({ path, text: readFileSync(join(packageRoot, path), "utf8") }));
}
