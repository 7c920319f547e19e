import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";

/** Names of our types that people use too. */
const COMMON = new Set(["GitHub"]);

/**
 * The names of our own types and values in a text, if they have two or more words: they mean nothing to a reader outside the
 * code.
 */
export function ownNamesIn(text: string): string[] {
  const said = new Set(text.match(/\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b/g));
  const src = join(packageRoot, "src");
  const names = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) =>
      [...readFileSync(join(src, file), "utf8").matchAll(/^export (?:interface|type|const|class|function) (\w+)/gm)].map(
        ([, name]) => name!,
      ),
    );
  return names.filter((name) => said.has(name) && !COMMON.has(name));
}
