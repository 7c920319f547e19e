import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type ChatRequest, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient, systemOf } from "../support/orchestrator.ts";

const folder = temporaryFolder(afterAll);
writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "home", scripts: { test: "vitest run" } }));
writeFileSync(join(folder, "door.ts"), "export const door = 1;\n");
// Agents and pipeline roles never answer here, so their work stays in progress until it is cancelled.
const model = await scriptedModel(
  (request, index) => (systemOf(request).startsWith("You are IO,") ? obedient(request, index) : { hang: true }),
  {},
  afterAll,
);
const home = temporaryHome({}, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);

let count = 0;
async function call(tool: string, args: unknown): Promise<{ read: string; message: Message }> {
  count += 1;
  const text = callText(tool, args);
  const message = await daemon.ask({ text, conversation: `case-${count}` });
  const isOurs = (request: ChatRequest) =>
    textOf(request.messages.findLast(({ role }) => role === "user")).endsWith(text) && request.messages.at(-1)?.role === "tool";
  return { read: textOf(model.requests.findLast(isOurs)?.messages.at(-1)), message };
}
const taskId = async () => (await daemon.json<{ items: { id: string }[] }>("GET", "/api/tasks")).items[0]!.id;
const agents = async () => (await daemon.json<{ items: { characterName: string }[] }>("GET", "/api/squads/home/agents")).items;

interface Case {
  tool: string;
  good: { args: unknown; reads: RegExp; effect?: () => Promise<void> };
  wrong: { args: unknown; names: string };
  fails: { args: unknown; reads: RegExp; ends?: "done" | "refused" };
}

const CASES: Case[] = [
  {
    tool: "squad_create",
    good: {
      args: { name: "Home", slug: "home", project_path: folder },
      reads: /^Created the squad "home" \(Home\) for /,
      effect: async () =>
        expect(await daemon.json("GET", "/api/squads/home")).toMatchObject({ name: "Home", projectPath: folder }),
    },
    wrong: { args: { name: 5, project_path: folder }, names: "name" },
    fails: { args: { name: "x", project_path: "/nowhere/at/all" }, reads: /\/nowhere\/at\/all/ },
  },
  {
    tool: "squad_add_agent",
    good: {
      args: { slug: "home", role_title: "Painter", charter: "Paints doors." },
      reads: /^Added .*, Painter \(tier /,
      effect: async () => expect(await agents()).toHaveLength(1),
    },
    wrong: { args: { slug: "home", role_title: "Painter", charter: "Paints.", model_tier: "top" }, names: "model_tier" },
    fails: { args: { slug: "nobody", role_title: "Painter", charter: "Paints." }, reads: /nobody/ },
  },
  {
    tool: "squad_agents",
    good: { args: { slug: "home" }, reads: /Painter.*Paints doors/ },
    wrong: { args: { slug: 3 }, names: "slug" },
    fails: { args: { slug: "nobody" }, reads: /nobody/ },
  },
  {
    tool: "squad_log_decision",
    good: {
      args: { slug: "home", decision: "Doors are blue", context: "they always were" },
      reads: /Logged for home/,
      effect: async () =>
        expect(await daemon.json("GET", "/api/squads/home/decisions")).toMatchObject({ items: [{ decision: "Doors are blue" }] }),
    },
    wrong: { args: { slug: "home" }, names: "decision" },
    fails: { args: { slug: "nobody", decision: "x" }, reads: /nobody/ },
  },
  {
    tool: "squad_recall",
    good: { args: { slug: "home" }, reads: /Doors are blue/ },
    wrong: { args: {}, names: "slug" },
    fails: { args: { slug: "nobody" }, reads: /nobody/ },
  },
  {
    tool: "squad_analyze",
    good: { args: { project_path: folder }, reads: /TypeScript.*npm test.*A roster that would fit.*role_title/s },
    wrong: { args: { path: folder }, names: "project_path" },
    fails: { args: { project_path: "/nowhere/at/all" }, reads: /\/nowhere\/at\/all/ },
  },
  {
    tool: "squad_delegate",
    good: {
      args: { slug: "home", task: "paint the door" },
      reads: /t_\w+/,
      effect: async () => expect(await taskId()).toMatch(/^t_/),
    },
    wrong: { args: { slug: "home" }, names: "task" },
    fails: { args: { slug: "home", task: "paint", agent: "Nobody" }, reads: /Nobody/ },
  },
  {
    tool: "squad_task_status",
    good: { args: async () => ({ task_id: await taskId() }), reads: /t_\w+.*(running|queued).*paint the door/s },
    wrong: { args: { id: "x" }, names: "task_id" },
    fails: { args: { task_id: "t_nope" }, reads: /t_nope/ },
  },
  {
    tool: "squad_task_cancel",
    good: {
      args: async () => ({ task_id: await taskId() }),
      reads: /^Task t_\w+ is cancelled\./,
      effect: async () => expect(await daemon.json("GET", `/api/tasks/${await taskId()}`)).toMatchObject({ status: "cancelled" }),
    },
    wrong: { args: {}, names: "task_id" },
    fails: { args: { task_id: "t_nope" }, reads: /t_nope/ },
  },
  {
    tool: "squad_status",
    good: { args: {}, reads: /^- home \(Home\), .* Painter/ },
    wrong: { args: { slug: "home" }, names: "slug" },
    // It cannot fail. Its answer without any squad is tested below, after the squad was deleted.
    fails: { args: {}, reads: /home/, ends: "done" },
  },
  {
    tool: "squad_remove_agent",
    good: {
      args: async () => ({ slug: "home", character_name: (await agents())[0]!.characterName }),
      reads: /^Removed /,
      effect: async () => expect(await agents()).toEqual([]),
    },
    wrong: { args: { slug: "home" }, names: "character_name" },
    fails: { args: { slug: "home", character_name: "Nobody" }, reads: /Nobody/ },
  },
  {
    tool: "squad_delete",
    good: {
      args: { slug: "home" },
      reads: /^Deleted the squad "home"/,
      effect: async () => expect((await daemon.fetch("/api/squads/home")).status).toBe(404),
    },
    wrong: { args: { name: "home" }, names: "slug" },
    fails: { args: { slug: "home" }, reads: /home/ },
  },
  {
    tool: "swarm_run",
    good: {
      args: { project_path: folder, issue: "Add a door" },
      reads: /Run r_\w+ has begun/,
      effect: async () => expect((await daemon.json<{ items: unknown[] }>("GET", "/api/runs")).items).toHaveLength(1),
    },
    wrong: { args: { project_path: folder }, names: "issue" },
    fails: { args: { slug: "nobody", issue: "Add a door" }, reads: /no squad "nobody"/ },
  },
  {
    tool: "swarm_status",
    good: { args: {}, reads: /r_\w+ running: Add a door/ },
    wrong: { args: { run_id: 5 }, names: "run_id" },
    fails: { args: { run_id: "r_nope" }, reads: /no run "r_nope"/ },
  },
];
const given = async (args: unknown) => (typeof args === "function" ? await args() : args);

describe.each(CASES)("$tool, from the model's side", ({ tool, good, wrong, fails }) => {
  test("a good call takes effect and its result reaches the model", async () => {
    const { read, message } = await call(tool, await given(good.args));
    expect(read).toMatch(good.reads);
    expect(message).toMatchObject({ status: "done", route: { tools: [tool] } });
    expect(journalOf(home, message.id)).toEqual([{ tool, state: "done" }]);
    await good.effect?.();
  });

  test("a call with wrong arguments is not made, and the model is told which field", async () => {
    const { read, message } = await call(tool, wrong.args);
    expect(read).toContain(`${tool} was not run, its arguments are not right.`);
    expect(read).toContain(wrong.names);
    expect(journalOf(home, message.id)).toEqual([{ tool, state: "refused" }]);
  });

  test("a call that meets trouble gives the model a sentence to act on", async () => {
    const { read, message } = await call(tool, fails.args);
    expect(read).toMatch(fails.reads);
    expect(read).not.toContain("fault inside IO");
    expect(message.status).toBe("done");
    expect(journalOf(home, message.id)).toEqual([{ tool, state: fails.ends ?? "failed" }]);
  });
});

test("without a squad, squad_status says that there is none", async () => {
  expect((await call("squad_status", {})).read).toMatch(/no squads?/i);
});

test("a message that set a run going says so, and stop ends the run", async () => {
  const { message } = await call("swarm_run", { project_path: folder, issue: "Add a window" });
  expect(message.route).toMatchObject({ answered: "delegated", runs: [expect.stringMatching(/^r_/)] });
  expect(await daemon.json("POST", "/api/stop")).toMatchObject({ runs: 2 });
});
