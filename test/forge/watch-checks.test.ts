import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { WatchDetail } from "../../src/protocol/watches.ts";
import { runIo } from "../support/daemon.ts";
import { type Loop, type Proposed, startLoop } from "../support/forge/loop.ts";
import { collectEndings } from "../support/home.ts";
import { sh, write } from "../support/swarm/index.ts";

const { atTheEnd, end } = collectEndings();
let loop: Loop;
let pull: Proposed;
beforeAll(async () => {
  loop = await startLoop(atTheEnd);
  pull = await loop.proposed("acme/checks", { maxRounds: 20 });
}, 400_000);
afterAll(end);
afterEach(() => expect(loop.double.faults).toEqual([]));

const begin = (name: string, status = "in_progress") =>
  loop.checks(pull).push({ id: loop.nextId(), commit: pull.head(), name, status, conclusion: null, log: "" });
const finish = (name: string, conclusion: string) =>
  Object.assign(loop.checks(pull).find((each) => each.name === name)!, { status: "completed", conclusion });
const triggers = async () =>
  (await loop.daemon().json<WatchDetail>("GET", `/api/watches/${pull.watch}`)).triggers.filter(({ kind }) => kind === "check");
const held = () => loop.become(pull.watch, "a held check", ({ kind, state }) => kind === "check" && state === "held");
/** The prompts of rounds that mention this check. */
const prompts = (name: string) =>
  loop.model.requests
    .map(({ messages }) => JSON.stringify(messages.at(-1)))
    .filter((text) => text.includes(`${name}\\n\\nThe end`));

test("a failed check is told at once and waits for those that still run, and one round works on all that failed", async () => {
  loop.setEngineer(({ afterTool }) => (afterTool ? { say: "C1: done\nC2: done" } : write("fix.txt", "one\n")));
  const head = pull.head();
  for (const name of ["first", "second"]) begin(name);
  begin("a person's", "waiting");
  finish("first", "failure");
  const { reason } = await held();
  expect(reason).toMatch(/^waits for the end of second, until \d{4}-.*Z at the latest$/);
  await loop.told(`acme/checks#${pull.number} is red: first`);
  expect((await runIo(["watch", "show", pull.watch], loop.home)).stdout).toContain(`#${pull.number} check: held; ${reason}`);
  await loop.looks(pull.watch, 3);
  expect(pull.head()).toBe(head);
  finish("second", "failure");
  await loop.become(pull.watch, "the round", ({ kind, state }) => kind === "check" && state === "done");
  expect((await triggers()).map(({ state }) => state)).toEqual(["done", "done"]);
  expect(pull.head()).not.toBe(head);
  expect(prompts("first")).toEqual(prompts("second"));
  expect(prompts("first").length).toBeGreaterThan(0);
}, 300_000);

test("a held check that is begun again sets nothing going when it passes", async () => {
  const head = pull.head();
  for (const name of ["flaky", "slow"]) begin(name);
  finish("flaky", "failure");
  const { id } = await held();
  Object.assign(loop.checks(pull).find(({ name }) => name === "flaky")!, {
    id: loop.nextId(),
    status: "queued",
    conclusion: null,
  });
  const { reason } = await loop.become(pull.watch, "its end", (each) => each.id === id && each.state !== "held");
  expect(reason).toBe("it was begun again before IO came to it");
  for (const name of ["flaky", "slow"]) finish(name, "success");
  await loop.looks(pull.watch, 3);
  expect(pull.head()).toBe(head);
}, 120_000);

test("a check that never ends holds a failed one for an hour, over restarts too, and what fails too late sets nothing going", async () => {
  const head = pull.head();
  begin("for ever", "queued");
  begin("mine");
  finish("mine", "failure");
  const { id } = await held();
  // Pretends that an hour has passed.
  await loop.restarted(() => {
    const db = new DatabaseSync(join(loop.home, "io.db"));
    const before = new Date(Date.now() - 3_600_000).toISOString();
    db.prepare("UPDATE watch_triggers SET created_at = ? WHERE id = ?").run(before, id);
    db.close();
  });
  loop.setEngineer(({ afterTool }) => {
    finish("for ever", "failure");
    return afterTool ? { say: "C1: done" } : sh("sleep 4; echo two > fix.txt");
  });
  await loop.become(pull.watch, "the round", (each) => each.id === id && each.state === "done");
  expect(pull.head()).not.toBe(head);
  const late = await loop.become(
    pull.watch,
    "the late one",
    (each) => each.id !== id && each.kind === "check" && each.state === "ignored" && each.reason!.includes("newer commit"),
  );
  expect(late.run).toBeNull();
  expect(prompts("for ever")).toEqual([]);
}, 300_000);
