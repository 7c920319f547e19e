import { chmodSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DoctorReport } from "../../../src/protocol/doctor.ts";
import type { Planning } from "../../../src/protocol/plans.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { systemOf } from "../../support/orchestrator.ts";
import { project } from "../../support/squads.ts";
import { until } from "../../support/until.ts";
import { webModel } from "../../support/web/model.ts";
import { GREETER } from "../../support/web/seed.ts";

let daemon: TestDaemon;

/** The status and message of a refusal. */
async function refusal(method: string, path: string, body?: unknown): Promise<[number, string]> {
  const response = await daemon.fetch(path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  return [response.status, ((await response.json()) as { error: { message: string } }).error.message];
}

const { atTheEnd, end } = collectEndings();
afterAll(end);
beforeAll(async () => {
  const model = await scriptedModel(
    (request, index) => {
      const system = systemOf(request);
      if (system.startsWith("You analyse what")) return { say: "**Complexity**: small." };
      if (!system.startsWith("You clarify a request")) return webModel(request, index);
      return {
        say: lastUserText(request).includes("In Welsh") ? "1. Greet in Welsh.\n\nREQUIREMENTS_CLEAR" : "1. In which language?",
      };
    },
    undefined,
    atTheEnd,
  );
  daemon = await startDaemonProcess(temporaryHome({}, atTheEnd), providerEnvironment(model.url), atTheEnd);
});

describe("a plan", () => {
  const begin = (issue: string) =>
    daemon.json<Planning>("POST", "/api/plans", { projectPath: project(GREETER), issue, standIns: true });
  const becomes = (id: string, status: Planning["status"]) =>
    until(
      `${id} is ${status}`,
      async () => {
        const plan = await daemon.json<Planning>("GET", `/api/plans/${id}`);
        return plan.status === status ? plan : undefined;
      },
      30_000,
    );

  test("asks, is answered once, and ends with requirements in a file", async () => {
    const { id } = await begin("Greet politely");
    expect((await becomes(id, "asking")).questions).toContain("In which language?");
    expect((await daemon.json<{ items: Planning[] }>("GET", "/api/plans")).items.map((plan) => plan.id)).toContain(id);
    expect(await daemon.json("POST", `/api/plans/${id}/answer`, { text: "In Welsh" })).toMatchObject({ status: "thinking" });
    expect(await refusal("POST", `/api/plans/${id}/answer`, { text: "again" })).toEqual([409, "This plan asks nothing now."]);
    const { path, requirements } = await becomes(id, "done");
    expect(requirements).toContain("Greet in Welsh.");
    expect(readFileSync(path!, "utf8")).toContain("Greet in Welsh.");
    expect(await refusal("POST", `/api/plans/${id}/cancel`)).toEqual([409, "This plan is over."]);
  });

  test("is cancelled while it asks, and says so", async () => {
    const { id } = await begin("Greet rudely");
    await becomes(id, "asking");
    await daemon.json("POST", `/api/plans/${id}/cancel`);
    expect((await becomes(id, "cancelled")).questions).toBeNull();
    expect((await refusal("POST", `/api/plans/${id}/answer`, { text: "too late" }))[0]).toBe(409);
  });

  test("that nobody began, or that is begun with nothing, is refused", async () => {
    for (const [method, path, body] of [
      ["GET", "/api/plans/p_none", undefined],
      ["POST", "/api/plans/p_none/cancel", undefined],
      ["POST", "/api/plans/p_none/answer", { text: "yes" }],
    ] as const)
      expect((await refusal(method, path, body))[0]).toBe(404);
    expect((await refusal("POST", "/api/plans", { issue: "no project" }))[0]).toBe(400);
    expect((await refusal("POST", "/api/plans/p_none/answer", { words: "not text" }))[0]).toBe(400);
  });
});

describe("a mendable finding", () => {
  test("is mended, and nothing but what was named", async () => {
    const token = join(daemon.home, "token");
    chmodSync(token, 0o644);
    const other = await daemon.json<DoctorReport>("POST", "/api/doctor/mend", { check: "node" });
    expect(other.items.map(({ check }) => check)).toEqual(["node"]);
    expect(statSync(token).mode & 0o777).toBe(0o644);
    const { ok, items } = await daemon.json<DoctorReport>("POST", "/api/doctor/mend", { check: "modes" });
    expect([ok, items.map(({ check, fixed }) => [check, fixed])]).toEqual([true, [["modes", true]]]);
    expect(statSync(token).mode & 0o777).toBe(0o600);
  });

  test("that does not exist is refused, not called well", async () => {
    expect(await refusal("POST", "/api/doctor/mend", { check: "moods" })).toEqual([404, expect.stringContaining("/api/doctor")]);
    expect((await refusal("POST", "/api/doctor/mend", {}))[0]).toBe(400);
    expect((await refusal("POST", "/api/doctor/mend", { check: "modes", fix: "all" }))[0]).toBe(400);
  });
});

describe("what was said", () => {
  test("is found by words of the question and of the answer, the latest first", async () => {
    await daemon.ask({ text: "repeat: a pelican", conversation: "birds", source: "web" });
    await daemon.ask({ text: "Pelican or heron?", conversation: "birds", source: "web" });
    const find = (query: string) =>
      daemon.json<{ items: { conversation: string; id: string }[] }>("GET", `/api/conversations/search?q=${query}`);
    const { items } = await find("pelican");
    expect(items.map(({ conversation }) => conversation)).toEqual(["birds", "birds"]);
    expect((await find("pelican&limit=1")).items).toEqual([items[0]]);
    expect((await find("flamingo")).items).toEqual([]);
    expect((await refusal("GET", "/api/conversations/search?q=x"))[1]).toContain("at least two characters");
    expect((await refusal("GET", "/api/conversations/search?q=pelican&limit=51"))[0]).toBe(400);
  });

  test("fills the model's window, as is told after a turn and not before one", async () => {
    await daemon.ask({ text: "hello", conversation: "spoken", source: "web" });
    const { context } = await until("the window is known", async () => {
      const answer = await daemon.json<{ context: Record<string, number> | null }>("GET", "/api/conversations/spoken/context");
      return answer.context ? { context: answer.context } : undefined;
    });
    expect(await daemon.json("GET", "/api/conversations/silent/context")).toEqual({ context: null });
    expect(context.window).toBeGreaterThan(context.total!);
    expect(context.total).toBeGreaterThan(0);
    expect((await refusal("GET", `/api/conversations/${encodeURIComponent("no name!")}/context`))[0]).toBe(400);
  });
});

test("none of these answers somebody without the token", async () => {
  for (const [method, path] of [
    ["GET", "/api/plans"],
    ["POST", "/api/plans"],
    ["POST", "/api/doctor/mend"],
    ["GET", "/api/conversations/search?q=pelican"],
    ["GET", "/api/conversations/birds/context"],
  ] as const)
    expect((await fetch(daemon.url + path, { method })).status).toBe(401);
});
