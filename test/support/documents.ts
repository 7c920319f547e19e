import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";

export interface Document {
  /** Relative to the package. */
  path: string;
  text: string;
}

/** What people read: the README, how to contribute, and everything in docs. */
export function documents(): Document[] {
  const below = readdirSync(join(packageRoot, "docs"), { recursive: true, encoding: "utf8" });
  const paths = [
    "README.md",
    "CONTRIBUTING.md",
    ...below.filter((name) => name.endsWith(".md")).map((name) => join("docs", name)),
  ];
  return paths.map((path) => ({ path, text: readFileSync(join(packageRoot, path), "utf8") }));
}
