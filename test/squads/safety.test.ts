import { renameSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { loosenedBy, tightened } from "../../src/home/tighten.ts";
import type { Squad } from "../../src/protocol/squads.ts";
import { runIo } from "../support/daemon.ts";
import { scriptedModel } from "../support/model.ts";
import { daemonOn, project, squadWith } from "../support/squads.ts";

describe("a squad is held to the tighter of both", () => {
  const all = {
    mode: "full",
    sandbox: "secrets",
    approvals: "wall",
    budgets: { task: { tokens: 1_000 }, day: { calls: 5 } },
  } as const;
  test("whichever says it", () => {
    expect(tightened(all, {})).toEqual(all);
    const own = {
      sandbox: "workspace",
      approvals: "none",
      budgets: { task: { tokens: 5_000, calls: 3 }, day: { calls: 2 } },
    } as const;
    expect(tightened(all, own)).toEqual({
      mode: "full",
      sandbox: "workspace",
      approvals: "wall",
      budgets: { task: { tokens: 1_000, calls: 3 }, day: { calls: 2 } },
    });
    expect(loosenedBy(all, own)).toEqual([
      "approvals: none is looser than wall, which holds for all.",
      "budgets.task.tokens: 5000 is more than 1000, which holds for all.",
    ]);
  });
});

test("io squad set holds it, refuses to loosen it, and takes it back; io squad move follows its project", async () => {
  const daemon = await daemonOn(await scriptedModel(() => ({ say: "ready" })));
  const folder = project();
  await squadWith(daemon, folder, "app", ["Engineer"]);
  const set = (...args: string[]) => runIo(["squad", "set", "app", ...args], daemon.home);
  const safety = async () => (await daemon.json<Squad>("GET", "/api/squads/app")).safety;
  expect(await set("--approvals", "effects", "--budget", "task.tokens=2000", "day.calls=9")).toMatchObject({ code: 0 });
  expect(await safety()).toEqual({ approvals: "effects", budgets: { task: { tokens: 2_000 }, day: { calls: 9 } } });
  expect((await runIo(["squad", "show", "app"], daemon.home)).stdout).toContain(
    "Held: approvals effects; budgets task.tokens=2000, day.calls=9\n",
  );
  expect(await set("--budget", "off", "--approvals", "default")).toMatchObject({ code: 0 });
  expect(await safety()).toEqual({});
  expect(await set("--isolation", "worktree")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("on a branch of its own"),
  });
  expect((await runIo(["squad", "show", "app"], daemon.home)).stdout).toContain("Works: each task in a worktree");
  expect((await set("--isolation", "moon")).code).toBe(2);
  expect(await set("--isolation", "none")).toMatchObject({ code: 0 });
  expect(await set()).toMatchObject({ code: 2, stderr: expect.stringContaining("--sandbox") });
  expect(await set("--budget", "task=5")).toMatchObject({ code: 2, stderr: expect.stringContaining("kind.unit=number") });
  expect((await set("--sandbox", "moon")).code).toBe(2);
  await daemon.json("PATCH", "/api/config", { approvals: "wall" });
  expect(await set("--approvals", "none")).toMatchObject({ code: 1, stderr: expect.stringContaining("looser than wall") });

  const moved = `${folder}-moved`;
  renameSync(folder, moved);
  expect((await runIo(["squad", "list"], daemon.home)).stdout).toContain("(missing: put it back, or io squad move app <folder>)");
  expect(await runIo(["squad", "move", "app", moved], daemon.home)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(moved),
  });
  expect((await daemon.json<Squad>("GET", "/api/squads/app")).projectPath).toBe(moved);
  renameSync(moved, folder);
});
