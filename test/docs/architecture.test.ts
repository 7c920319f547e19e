import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { documents } from "../support/documents.ts";

const read = (path: string) => readFileSync(join(packageRoot, path), "utf8");
const folders = (path: string) =>
  readdirSync(join(packageRoot, path), { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? [each.name] : []));

test("the table of rooms names every folder of src and the page, and nothing else", () => {
  const [, section = ""] = /^## Rooms\n(.*?)^## /ms.exec(read("docs/architecture.md")) ?? [];
  const rooms = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  expect(rooms.sort()).toEqual([...folders("src"), "web"].sort());
});

test("the architecture stays one page", () => {
  expect(read("docs/architecture.md").split(/\s+/).length).toBeLessThan(1_700);
});

test("every decision is listed, has the same three parts and stays short", () => {
  const files = readdirSync(join(packageRoot, "docs/decisions")).filter((name) => name !== "README.md");
  const list = read("docs/decisions/README.md");
  const wrong = files.filter((name) => {
    const text = read(`docs/decisions/${name}`);
    const [, title = ""] = /^# (.+)/.exec(text) ?? [];
    const parts = [...text.matchAll(/^## (.+)$/gm)].map(([, part]) => part).join();
    const isListed = list.includes(`- [${title}](${name})`);
    return !isListed || parts !== "Context,Decision,Consequences" || text.split(/\s+/).length > 300;
  });
  expect(wrong).toEqual([]);
});

test("every file of ours that a document names is there", () => {
  const named = documents().flatMap(({ path, text }) =>
    [...text.matchAll(/`((?:src|test|scripts|bench|pipelines|docs)\/[^`*\s<>…]+)`/g)].map(([, name = ""]) => ({ path, name })),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ name }) => !existsSync(join(packageRoot, name)))).toEqual([]);
});

test("every link between documents leads to a file, and to a heading of it", () => {
  const dead = documents().flatMap(({ path, text }) =>
    [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !leads(path, target))
      .map((target) => `${path}: ${target}`),
  );
  expect(dead).toEqual([]);
});

function leads(from: string, target: string): boolean {
  const [file = "", heading] = target.split("#");
  const path = file === "" ? from : join(dirname(from), file);
  if (!existsSync(join(packageRoot, path))) return false;
  return heading === undefined || headingsOf(read(path)).includes(heading);
}

/** The anchors that GitHub makes from headings. */
function headingsOf(text: string): string[] {
  return [...withoutCode(text, /^```.*?^```/gms).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .trim()
      .replaceAll(" ", "-"),
  );
}

function withoutCode(text: string, code = /^```.*?^```|`[^`\n]*`/gms): string {
  return text.replace(code, "");
}
