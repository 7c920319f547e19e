import { expect, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { createSquadStore, squadOwner } from "../../src/store/squads.ts";

function squads() {
  const store = openStore(":memory:");
  const squadStore = createSquadStore(store);
  squadStore.create({ slug: "web", name: "Web", projectPath: "/srv/web", universe: "a-team" });
  return { store, squads: squadStore };
}
const agent = (characterName: string) => ({
  characterName,
  roleTitle: "Engineer",
  charter: "All of it.",
  modelTier: "medium" as const,
});

test("a squad is found by its slug and by its project's path, and neither can be given twice", () => {
  const { squads: store } = squads();
  expect(store.find("web")).toMatchObject({
    slug: "web",
    name: "Web",
    projectPath: "/srv/web",
    universe: "a-team",
    status: "idle",
  });
  expect(store.findByPath("/srv/web")?.slug).toBe("web");
  expect(store.find("api")).toBeUndefined();
  expect(() => store.create({ slug: "web", name: "W", projectPath: "/x", universe: "aliens" })).toThrow(/already called "web"/);
  expect(() => store.create({ slug: "w2", name: "W", projectPath: "/srv/web", universe: "aliens" })).toThrow(
    /"web" already works on/,
  );
  store.create({ slug: "api", name: "Api", projectPath: "/srv/api", universe: "aliens" });
  store.setStatus("api", "working");
  expect(store.list().map(({ slug, status }) => [slug, status])).toEqual([
    ["api", "working"],
    ["web", "idle"],
  ]);
});

test("agents are listed in the order they joined, and can be changed and removed", () => {
  const { squads: store } = squads();
  for (const name of ["Hannibal", "Face", "Murdock"]) store.addAgent("web", agent(name));
  store.setAgentStatus("web", "Face", "working");
  expect(store.removeAgent("web", "Hannibal")).toBe(true);
  expect(store.removeAgent("web", "Hannibal")).toBe(false);
  expect(store.agents("web").map(({ characterName, status }) => [characterName, status])).toEqual([
    ["Face", "working"],
    ["Murdock", "idle"],
  ]);
  expect(() => store.addAgent("web", agent("Face"))).toThrow();
  expect(() => store.addAgent("nobody", agent("Face"))).toThrow();
});

test("the last decisions come oldest first, and a search finds any part of text or context", () => {
  const { squads: store } = squads();
  for (let number = 1; number <= 25; number += 1)
    store.addDecision("web", { decision: `Decision ${number}`, context: number === 3 ? "50% of ÜBUNG" : undefined });
  const last = store.lastDecisions("web", 20).map(({ decision }) => decision);
  expect([last.length, last[0], last.at(-1)]).toEqual([20, "Decision 6", "Decision 25"]);
  expect(store.searchDecisions("web", "decision 2").map(({ decision }) => decision)).toHaveLength(7);
  expect(store.searchDecisions("web", "50% of übung").map(({ decision }) => decision)).toEqual(["Decision 3"]);
  expect(store.searchDecisions("web", "_ecision")).toEqual([]);
});

test("a search for decisions takes every word, in any order and either text, and lists page backwards to the oldest", () => {
  const { squads: store } = squads();
  store.create({ slug: "api", name: "Api", projectPath: "/srv/api", universe: "aliens" });
  store.addDecision("web", { decision: "Use bcrypt for password hashing", context: "Argon is not in the ÜBUNG image" });
  store.addDecision("api", { decision: "bcrypt hashing" });
  for (let number = 1; number <= 229; number += 1) store.addDecision("web", { decision: `Rule ${number} on hashing` });
  const found = (text: string) => store.searchDecisions("web", text).map(({ decision }) => decision);
  expect(found("bcrypt hashing")).toEqual(["Use bcrypt for password hashing"]);
  expect(found("  hashing\tBCRYPT übung ")).toEqual(["Use bcrypt for password hashing"]);
  expect(found("bcrypt scrypt")).toEqual([]);
  const seen: string[] = [];
  for (let page = store.listDecisions("web", { limit: 100 }); page.length > 0; ) {
    seen.push(...page.map(({ decision }) => decision));
    page = store.listDecisions("web", { limit: 100, before: page.at(-1)!.id });
  }
  expect([seen.length, seen[0], seen.at(-1)]).toEqual([230, "Rule 229 on hashing", "Use bcrypt for password hashing"]);
  const [last] = store.searchDecisions("web", "rule hashing", { limit: 1 });
  expect(store.searchDecisions("web", "rule hashing", { limit: 1, before: last!.id })[0]?.decision).toBe("Rule 228 on hashing");
});

test("a task keeps all that is learnt of it, with the tokens it used", () => {
  const { squads: store, store: database } = squads();
  const origin = { conversation: "main", source: { channel: "web" as const }, messageId: "m1" };
  store.insertTask({ id: "t1", squad: "web", agent: "Face", description: "do it", origin, reason: "fits", model: "m" });
  const insert = database.db.prepare(
    "INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at) VALUES (?, 'a', 'm', 10, 2, 1, 5, 'now')",
  );
  insert.run("t1");
  insert.run("t1");
  insert.run("other");
  const evidence = { filesChanged: ["a.ts"], commands: [{ command: "npm test", exitCode: 1 }], treeBefore: "x", treeAfter: null };
  store.updateTask("t1", { status: "running", startedAt: "s", sessionId: "session-1", attempts: 1 });
  store.updateTask("t1", { status: "failed", error: { code: "refused", message: "no" }, evidence, finishedAt: "f" });
  expect(store.findTask("t1")).toMatchObject({
    squad: "web",
    agent: "Face",
    status: "failed",
    error: { code: "refused", message: "no" },
    evidence,
    origin,
    reason: "fits",
    sessionId: "session-1",
    attempts: 1,
    delivered: false,
    startedAt: "s",
    finishedAt: "f",
    usage: { calls: 2, inputTokens: 20, outputTokens: 4, cacheReadTokens: 2 },
  });
  expect(store.updateTask("t9", { status: "done" })).toBeUndefined();
});

test("tasks are listed newest first by squad and status, and the open ones in the order they were asked for", () => {
  const { squads: store } = squads();
  store.create({ slug: "api", name: "Api", projectPath: "/srv/api", universe: "aliens" });
  for (const [id, squad] of [
    ["t1", "web"],
    ["t2", "api"],
    ["t3", "web"],
    ["t4", "web"],
  ] as const) {
    store.insertTask({ id, squad, agent: "Face", description: id });
  }
  store.updateTask("t1", { status: "done" });
  store.updateTask("t3", { status: "running" });
  const ids = (tasks: { id: string }[]) => tasks.map(({ id }) => id);
  expect(ids(store.listTasks())).toEqual(["t4", "t3", "t2", "t1"]);
  expect(ids(store.listTasks({ squad: "web" }))).toEqual(["t4", "t3", "t1"]);
  expect(ids(store.listTasks({ squad: "web", status: "queued" }))).toEqual(["t4"]);
  expect(ids(store.listTasks({ before: "t3", limit: 1 }))).toEqual(["t2"]);
  expect(ids(store.openTasks())).toEqual(["t2", "t3", "t4"]);
  expect(ids(store.undeliveredTasks())).toEqual(["t1"]);
  store.updateTask("t1", { delivered: true });
  expect(ids(store.undeliveredTasks())).toEqual([]);
});

test("a deleted squad takes agents, decisions and tasks with it, and names the sessions it leaves, no other squad's", () => {
  const { squads: store, store: database } = squads();
  store.create({ slug: "web-2", name: "Web 2", projectPath: "/srv/web2", universe: "aliens" });
  const session = database.db.prepare("INSERT INTO sessions (id, owner, fingerprint, created_at) VALUES (?, ?, 'f', 'now')");
  session.run("s1", squadOwner("web", "Face"));
  session.run("s2", squadOwner("web-2", "Ripley"));
  store.setSession("web", "s3");
  store.addAgent("web", agent("Face"));
  store.addDecision("web", { decision: "d" });
  store.insertTask({ id: "t1", squad: "web", agent: "Face", description: "d" });
  store.updateTask("t1", { sessionId: "s1" });
  expect(store.delete("web")).toEqual({ deleted: true, sessions: ["s1", "s3"] });
  expect([store.find("web"), store.agents("web"), store.lastDecisions("web", 9), store.listTasks()]).toEqual([
    undefined,
    [],
    [],
    [],
  ]);
  const retired = database.db.prepare("SELECT id FROM sessions WHERE retired_at IS NOT NULL").all() as { id: string }[];
  expect(retired.map(({ id }) => id)).toEqual(["s1"]);
  expect(store.delete("web")).toEqual({ deleted: false, sessions: [] });
  expect(store.find("web-2")).toBeDefined();
  expect(store.leftoverSessions()).toEqual(["s1"]);
  store.forgetSession("s1");
  expect(store.leftoverSessions()).toEqual([]);
});
