import { linkSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pathsOf } from "../../src/home/paths.ts";
import { createFolderMembers } from "../../src/tools/folder-members.ts";
import { createPathGuard } from "../../src/tools/guard.ts";
import { temporaryFolder } from "../support/home.ts";

/** Clocks that are a minute ahead of everything that the tests have written. */
function later(by = { now: 60_000, elapsed: 0 }) {
  return { by, clocks: { now: () => Date.now() + by.now, elapsed: () => performance.now() + by.elapsed } };
}

function fill(folder: string, count: number): void {
  for (let each = 0; each < count; each += 1) {
    if (each % 100 === 0) mkdirSync(join(folder, `s${each / 100}`), { recursive: true });
    writeFileSync(join(folder, `s${Math.floor(each / 100)}`, `f${each}`), "");
  }
}

test("a second name is found out, one given a moment ago too, and one dated back", () => {
  const root = temporaryFolder();
  const paths = pathsOf({ IO_HOME: join(root, "home"), HOME: root });
  mkdirSync(paths.sessions, { recursive: true });
  const guard = createPathGuard({ paths, packageRoot: join(root, "package"), selfEdit: () => false });
  const reads = (path: string) => guard.refuse(path, "read", root) === undefined;
  writeFileSync(join(root, "own"), "");
  linkSync(join(root, "own"), join(root, "own-twice"));
  expect(reads(join(root, "own-twice"))).toBe(true);

  const session = join(paths.sessions, "a", "events.jsonl");
  mkdirSync(join(paths.sessions, "a"));
  writeFileSync(session, "secret");
  linkSync(session, join(root, "link"));
  expect(reads(join(root, "link"))).toBe(false);
  linkSync(session, join(root, "other"));
  utimesSync(join(root, "other"), 1, 1);
  expect(reads(join(root, "other"))).toBe(false);
  expect(reads(join(root, "own-twice"))).toBe(true);
});

test("what came into the folder after it was walked is found, also what was moved in", () => {
  const root = temporaryFolder();
  const folder = join(root, "sessions");
  mkdirSync(folder);
  for (const name of ["moved", "outside"]) {
    writeFileSync(join(root, name), "");
    linkSync(join(root, name), join(root, `${name}-twice`));
  }
  const isMember = createFolderMembers(folder);
  const asked = (name: string) => isMember(statSync(join(root, name)));
  expect([asked("moved-twice"), asked("outside-twice")]).toEqual([false, false]);
  renameSync(join(root, "moved"), join(folder, "moved"));
  writeFileSync(join(folder, "new"), "");
  linkSync(join(folder, "new"), join(root, "new-twice"));
  expect([asked("moved-twice"), asked("new-twice"), asked("outside-twice")]).toEqual([true, true, false]);
  rmSync(join(folder, "new"));
  expect(asked("new-twice")).toBe(false);
});

test("a clock that was set back or forth is no way around", () => {
  const root = temporaryFolder();
  const folder = join(root, "sessions");
  mkdirSync(folder);
  writeFileSync(join(root, "old"), "");
  const { by, clocks } = later({ now: 3_600_000, elapsed: 0 });
  const isMember = createFolderMembers(folder, clocks);
  expect(isMember(statSync(join(root, "old")))).toBe(false);
  by.now = 0;
  writeFileSync(join(folder, "new"), "");
  linkSync(join(folder, "new"), join(root, "link"));
  expect(isMember(statSync(join(root, "link")))).toBe(true);
});

test("the folder is walked once for all the files that have not changed since, however much it holds", () => {
  const root = temporaryFolder();
  const folder = join(root, "sessions");
  fill(folder, 3_000);
  const linked = statSync(join(root));
  const isMember = createFolderMembers(folder, later().clocks);
  const took = (times: number) => {
    const started = performance.now();
    for (let each = 0; each < times; each += 1) expect(isMember(linked)).toBe(false);
    return performance.now() - started;
  };
  const first = took(1);
  expect(took(50)).toBeLessThan(first * 5);
});
