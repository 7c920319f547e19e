import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { referencePages } from "../../scripts/reference.ts";
import { NOT_DOCUMENTED, TURN_CODES, VARIABLES, WORK_CODES } from "../../scripts/reference-words.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { VARIABLES as RUN_VARIABLES } from "../../src/swarm/pipeline/settings.ts";

const folder = join(packageRoot, "docs", "reference");
const pages = referencePages();

describe("the reference is what the code says", () => {
  test.each(Object.keys(pages))("docs/reference/%s is as `npm run docs` writes it", (name) => {
    expect(readFileSync(join(folder, name), "utf8")).toBe(pages[name]);
  });

  test("no table has an entry without its meaning", () => {
    const mute = Object.entries(pages)
      .filter(([name]) => name === "config.md" || name === "environment.md" || name === "errors.md" || name === "commands.md")
      .flatMap(([name, text]) => [...text.matchAll(/^\| .*\| {2}\|$/gm)].map(([row]) => `${name}: ${row}`));
    expect(mute).toEqual([]);
  });

  test("flags that a person may type are there, hidden ones are not", () => {
    expect(pages["commands.md"]).toContain("`--self-edit`");
    expect(pages["commands.md"]).not.toContain("--until-idle");
  });

  test("every environment variable that the code reads is documented, and no other", () => {
    const named = Object.values(VARIABLES).flatMap(({ variables }) => Object.keys(variables));
    const caches = [...readFileSync(join(packageRoot, "src/process/wall/caches.ts"), "utf8").matchAll(/"([A-Z][A-Z_]{4,})"/g)];
    const all = read(/\benv\.([A-Z][A-Z0-9_]+)|"((?:IO|COPILOT|GH|GITHUB|TELEGRAM)_[A-Z_]+|[A-Z_]+_(?:API_KEY|PROXY))"/g);
    expect(
      [...new Set([...all, ...Object.values(RUN_VARIABLES), ...caches.map(([, name = ""]) => name)])]
        .filter((name) => !NOT_DOCUMENTED.includes(name))
        .sort(),
    ).toEqual([...new Set(named)].sort());
  });

  test("every code that work can fail with is documented", () => {
    const known = [...Object.keys(TURN_CODES), ...Object.keys(WORK_CODES), "custom"];
    expect(read(/\bcode: "([a-z_]+)"/g).filter((code) => !known.includes(code))).toEqual([]);
  });
});

/** What a pattern matches in the source, without duplicates. */
function read(pattern: RegExp): string[] {
  const files = readdirSync(join(packageRoot, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const found = files.flatMap((name) => {
    const text = readFileSync(join(packageRoot, "src", name), "utf8");
    return [...text.matchAll(pattern)].map(([, one, other]) => one ?? other ?? "");
  });
  return [...new Set(found)];
}
