import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { checkAgentsDir, checkDocDir, openProject } from "../../src/swarm/run/checkout.ts";
import { bundled } from "../support/bundled.ts";
import { temporaryFolder } from "../support/home.ts";
import { NAMES, ODDITIES } from "../support/oddities.ts";

interface Result {
  name: string;
  kind: string;
  below: string;
  names?: string[];
  /** The content of the first, second and third tree. */
  got?: (string | undefined)[][];
  error?: string;
}

test("whatever files a checkout contains, its worktrees get the dependencies and no run fails because of them", async () => {
  const program = await bundled(join(packageRoot, "test", "support", "odd-trees.ts"));
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  const printed = execFileSync(process.execPath, [join(packageRoot, "test", "support", "as-nobody.mjs"), program], {
    env: { ...process.env, TMPDIR: folder },
    encoding: "utf8",
  });
  const results = JSON.parse(printed) as Result[];
  expect(results.length).toBeGreaterThan(NAMES.length * Object.keys(ODDITIES).length);
  expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
  for (const { got = [], names = [], name, kind, below } of results) {
    // Installed entries exist in both trees with the same type; an unreadable folder may be missing.
    for (const [source, ...copies] of got)
      expect({ name, kind, below, copies }).toEqual({ name, kind, below, copies: [source, source] });
    if (below === "" && !kind.includes("folder") && !name.startsWith(".pnp"))
      expect({ name, kind, names }).toEqual({ name, kind, names: [] });
  }
  const installed = new Set(
    results.filter(({ below, kind }) => below === "" && kind === "folder").flatMap(({ names = [] }) => names),
  );
  expect([...installed].sort()).toEqual([".bundle", ".venv", ".yarn", "deps", "node_modules", "vendor", "venv"]);
}, 120_000);

test.each(Object.keys(ODDITIES))(
  "a project, agents or documents folder that is a %s works or is refused with a message",
  async (kind) => {
    const root = temporaryFolder();
    const aside = join(root, "aside");
    mkdirSync(aside);
    writeFileSync(join(aside, "file"), "");
    const server = await ODDITIES[kind]?.(join(root, "odd"), aside);
    const said = (work: () => unknown) => {
      try {
        work();
        return "taken";
      } catch (error) {
        return String(error);
      }
    };
    const expected = /^taken$|^UserError: .*(?:is no folder|leads out of the project)/;
    expect(said(() => openProject(join(root, "odd")))).toMatch(expected);
    expect(said(() => openProject(join(root, "odd", "below")))).toMatch(expected);
    expect(said(() => checkDocDir(root, "odd/doc"))).toMatch(expected);
    expect(said(() => checkAgentsDir(root, { agentsDir: "odd/agents", agentsDirSet: true }))).toMatch(expected);
    server?.close();
  },
);

test("files that IO cannot read are reported and missing from the branch; everything else is on it", async () => {
  const program = await bundled(join(packageRoot, "test", "support", "closed-file-saver.ts"));
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  const printed = execFileSync(process.execPath, [join(packageRoot, "test", "support", "as-nobody.mjs"), program], {
    env: { ...process.env, TMPDIR: folder, HOME: folder },
    encoding: "utf8",
  });
  expect(JSON.parse(printed)).toEqual({
    saved: ["folder/open.txt", "open.txt"],
    notes: ["left out of the branch, because they cannot be read: closed.txt, folder/closed too.txt"],
  });
}, 60_000);
