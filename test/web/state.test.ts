import { describe, expect, test } from "vitest";
import type { Event } from "../../src/protocol/events.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { ReviewLoop, Run, RunStep } from "../../src/protocol/runs.ts";
import { readDiff } from "../../web/src/diff/diff.ts";
import { lineDiff } from "../../web/src/diff/line-diff.ts";
import { faceOf } from "../../web/src/lib/face.ts";
import { freshName } from "../../web/src/lib/fresh-name.ts";
import { withoutUnfinishedRow } from "../../web/src/lib/patch.ts";
import { renderMarkdown } from "../../web/src/lib/render-markdown.ts";
import { createConversation } from "../../web/src/live/conversation.ts";
import { openFeed } from "../../web/src/live/feed.ts";
import { createReader } from "../../web/src/live/sse.ts";
import { barsOf, marksOf } from "../../web/src/runs/gantt.ts";
import { drawRun } from "../../web/src/runs/picture.ts";
import { momentsOf, runAt } from "../../web/src/runs/run-at.ts";
import { approvalsOf } from "../../web/src/runs/voided.ts";
import { changesBetween, fieldsOf, holdsSecret, readText, type Schema, textOf } from "../../web/src/settings/fields.ts";
import { drawMap } from "../../web/src/wiki/map.ts";
import { until } from "../support/until.ts";

const message = (more: Partial<Message> = {}): Message => ({
  ...{
    id: "m1",
    conversation: "main",
    source: { channel: "web" },
    text: "hi",
    attachments: [],
    steered: [],
    status: "queued",
    reply: null,
  },
  ...{ partial: false, error: null, attempts: 0, createdAt: "2026-01-01T00:00:00.000Z", startedAt: null, finishedAt: null },
  route: { answered: "not yet", tools: [], tasks: [], runs: [] },
  usage: { calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0 },
  ...more,
});
const done = () => message({ status: "done", reply: "all of it", finishedAt: "2026-01-01T00:00:09.000Z" });
const delta = (id: number, text: string, restarted?: boolean): Event => ({
  id,
  type: "message.delta",
  data: { id: "m1", text, ...(restarted && { restarted }) },
});

describe("a conversation", () => {
  test("that is loaded in the middle of a turn waits for what was said before, and loses and doubles nothing", () => {
    const talk = createConversation("main");
    talk.load([message({ status: "running" })]);
    talk.apply(delta(7, "c"));
    talk.apply(delta(8, "d"));
    expect(talk.find("m1")?.text).toBe("");
    talk.catchUp({ id: "m1", text: "abc", tools: [], upTo: 7 });
    talk.apply(delta(9, "e"));
    expect(talk.find("m1")?.text).toBe("abcde");
  });

  test("is not set back by a list that was asked for before the news", () => {
    const talk = createConversation("main");
    talk.load([message({ status: "running" })]);
    talk.apply({ id: 5, type: "message.finished", data: done() });
    talk.load([message({ status: "running" })]);
    expect(talk.find("m1")?.message.status).toBe("done");
    talk.apply(delta(6, "late"));
    expect(talk.find("m1")?.text).toBe("all of it");
  });

  test("is another object for whoever draws it when its words were changed or something was said into it", () => {
    const talk = createConversation("main");
    const queued = (id: number, text: string): Event => ({
      id,
      type: "message.queued",
      data: { id: "m1", conversation: "main", source: { channel: "web" }, text },
    });
    talk.apply(queued(1, "hi"));
    const first = talk.find("m1")!.message;
    talk.apply(queued(2, "changed"));
    const second = talk.find("m1")!.message;
    expect([second === first, second.text]).toEqual([false, "changed"]);
    talk.apply({ id: 3, type: "message.steered", data: { id: "m1", text: "also" } });
    expect(talk.find("m1")!.message === second).toBe(false);
  });

  test("forgets what an answer said before it was begun again, and pairs the ends of calls with their beginnings", () => {
    const talk = createConversation("main");
    talk.apply({
      id: 1,
      type: "message.queued",
      data: { id: "m1", conversation: "main", source: { channel: "web" }, text: "hi" },
    });
    talk.apply({ id: 2, type: "message.started", data: { id: "m1", conversation: "main" } });
    talk.apply(delta(3, "wrong"));
    talk.apply(delta(4, "right", true));
    for (const [id, state] of [
      [5, "started"],
      [6, "started"],
      [7, "done"],
    ] as const)
      talk.apply({ id, type: "message.tool", data: { id: "m1", tool: "shell", state } });
    expect(talk.find("m1")).toMatchObject({ text: "right", tools: [{ state: "done" }, { state: "started" }] });
  });
});

describe("the stream of news", () => {
  test("is read whatever the pieces it comes in", () => {
    const text = ': hello\nid: 3\n\nid: 4\nevent: message.delta\ndata: {"id":"m1"}\n\n: here\n\n';
    for (const size of [1, 2, 7, 500]) {
      const read = createReader();
      const sent = text.match(new RegExp(`[\\s\\S]{1,${size}}`, "g"))!.flatMap((piece) => read(piece));
      expect(sent).toEqual([
        { id: 3, name: "", data: "" },
        { id: 4, name: "message.delta", data: '{"id":"m1"}' },
      ]);
    }
  });

  test("comes back after a loss, from the last event on, and ends where it is refused", async () => {
    const asked: (number | undefined)[] = [];
    const states: string[] = [];
    const heard: number[] = [];
    const answers = [
      () => new Response("id: 4\n\nid: 5\nevent: page.written\ndata: {}\n\n"),
      () => Promise.reject(new TypeError("gone")),
      () => new Response("no", { status: 401 }),
    ];
    openFeed({
      open: async (lastId) => {
        asked.push(lastId);
        return answers[asked.length - 1]!();
      },
      onState: (state) => states.push(state),
      onEvent: ({ id }) => heard.push(id),
      firstWaitMs: 1,
    });
    await until("the refusal", () => states.includes("refused"));
    expect(asked).toEqual([undefined, 5, 5]);
    expect(heard).toEqual([5]);
    expect(states).toEqual(["connecting", "connected", "reconnecting", "reconnecting", "refused"]);
  });
});

test("a diff is read file by file with the numbers of its lines", () => {
  const [file, ...others] = readDiff(
    "diff --git a/x.js b/x.js\nindex 1..2 100644\n--- a/x.js\n+++ b/x.js\n@@ -3,2 +3,2 @@\n same\n-old\n+--- not a header\n",
  );
  expect(others).toEqual([]);
  expect(file).toMatchObject({ path: "x.js", added: 1, removed: 1 });
  expect(file?.lines.map(({ kind, old, now }) => [kind, old, now])).toEqual([
    ["hunk", undefined, undefined],
    ["same", 3, 3],
    ["removed", 4, undefined],
    ["added", undefined, 4],
  ]);
});

test("two texts are compared line by line", () => {
  const text = lineDiff("a", "one\ntwo\nthree\n", "one\n2\nthree\nfour\n");
  expect(readDiff(text)[0]).toMatchObject({ path: "a", added: 2, removed: 1 });
  expect(readDiff(lineDiff("a", "same\n", "same\n"))[0]?.lines).toEqual([]);
});

test("a run is shown as it was at a moment: what had not begun is not there, what had not ended runs", () => {
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
  const step = (key: string, from: number, to: number): RunStep => ({
    ...{
      key,
      kind: "call",
      phase: "spec",
      stream: null,
      agent: "pm",
      model: null,
      asked: null,
      state: "done",
      attempts: 1,
      worker: null,
    },
    ...{ verdict: "approved", error: null, usage: message().usage, startedAt: at(from), finishedAt: at(to) },
  });
  const run = {
    ...{
      id: "r",
      status: "done",
      outcome: "approved",
      createdAt: at(0),
      finishedAt: at(9),
      streams: [],
      loops: [],
      evidence: [],
    },
    phases: [{ name: "spec", status: "done", reason: null, startedAt: at(1), finishedAt: at(8) }],
    steps: [step("a", 1, 3), step("b", 4, 6), step("c", 7, 8)],
  } as unknown as Run;
  const then = runAt(run, Date.parse(at(5)));
  expect(then).toMatchObject({ status: "running", outcome: null, phases: [{ status: "running" }] });
  expect(then.steps.map(({ key, state }) => [key, state])).toEqual([
    ["a", "done"],
    ["b", "begun"],
  ]);
  expect(runAt(run, Date.parse(at(9)))).toBe(run);
  expect(momentsOf(run).length).toBe(8);
});

test("every key of the config has a field of its kind, which gives back what it was given", () => {
  const text = { type: "string" };
  const item = { type: "object", properties: { id: text, pin: { ...text, writeOnly: true } } };
  const given: Record<string, [schema: Schema, kind: string, ...values: unknown[]]> = {
    flag: [{ type: "boolean", default: false }, "flag"],
    maybe: [{ type: "boolean" }, "maybe", true, false, undefined],
    choice: [{ enum: ["a", "b"] }, "choice", "b"],
    number: [{ type: "integer" }, "number", 7, "soon", undefined],
    hosts: [{ type: "array", items: text }, "lines", ["x", "y"], undefined],
    command: [{ anyOf: [text, { type: "array", items: text }] }, "command", "hear {file}", ["hear", "a b", "{file}"]],
    name: [text, "text", "IO"],
    token: [{ ...text, writeOnly: true }, "secret"],
    whole: [item, "parts"],
    list: [{ type: "array", items: item }, "rows"],
    named: [{ type: "object", additionalProperties: item }, "entries"],
    texts: [{ type: "object", additionalProperties: text }, "pairs"],
    deep: [{ type: "object" }, "json", { a: 1 }, [1]],
  };
  const fields = fieldsOf({ properties: Object.fromEntries(Object.entries(given).map(([key, [schema]]) => [key, schema])) });
  expect(fields.map(({ key, kind }) => [key, kind])).toEqual(Object.entries(given).map(([key, [, kind]]) => [key, kind]));
  for (const { key, kind } of fields)
    for (const value of given[key]!.slice(2)) expect(readText(kind, textOf(kind, value)), key).toEqual(value);
  expect(textOf("command", ["/opt/my program"])).toBe('"/opt/my program"');
  expect(textOf("secret", { set: true })).toBe("");
  expect(fields.filter(holdsSecret).map(({ key }) => key)).toEqual(["token", "whole", "list", "named"]);
  expect(changesBetween({ a: 1, b: 2 }, { a: 1, c: 3 })).toEqual({ b: null, c: 3 });
});

test("each attempt at a step is a bar: one that failed, one that was cut off until the next began, and the last as the step stands", () => {
  const at = (second: number) => new Date(second * 1_000).toISOString();
  const step = {
    ...{ key: "a", kind: "call", state: "done", attempts: 3, error: null, startedAt: at(40), finishedAt: at(100) },
    tries: [
      { startedAt: at(0), finishedAt: at(10), error: "the reply was empty" },
      { startedAt: at(20), finishedAt: null, error: null },
      { startedAt: at(40), finishedAt: at(100), error: null },
    ],
  } as unknown as RunStep;
  const scale = { begin: 0, end: 100_000, now: 100_000 };
  expect(barsOf(step, scale).map(({ left, width, state }) => [left, width, state])).toEqual([
    [0, 10, "failed"],
    [20, 20, "cut"],
    [40, 60, "done"],
  ]);
  expect(barsOf(step, { ...scale, end: 30_000 }).length).toBe(2);
  // What was under way when its run ended was cut off by that.
  const under = { ...step, state: "begun", finishedAt: null, tries: [] } as unknown as RunStep;
  expect(barsOf(under, scale)[0]?.state).toBe("begun");
  expect(barsOf(under, { ...scale, isOver: true })).toMatchObject([{ state: "cut", left: 40, width: 60 }]);
});

test("in a replay an attempt is there from its own beginning on, runs until it ended, and no bar reaches past the playhead", () => {
  const at = (second: number) => new Date(second * 1_000).toISOString();
  const step = {
    ...{ key: "a", kind: "call", state: "failed", attempts: 2, error: "no", startedAt: at(40), finishedAt: at(99.9) },
    tries: [
      { startedAt: at(10), finishedAt: at(30), error: "the reply was empty" },
      { startedAt: at(40), finishedAt: at(99.9), error: "no" },
    ],
  } as unknown as RunStep;
  const short = { ...step, key: "b", startedAt: at(99.9), finishedAt: at(100), tries: [] };
  const lists = { phases: [], streams: [], loops: [], evidence: [] };
  const run = { status: "failed", createdAt: at(0), finishedAt: at(100), steps: [step, short], ...lists } as unknown as Run;
  const barsAt = (second: number) =>
    runAt(run, second * 1_000).steps.flatMap((each) => barsOf(each, { begin: 0, end: 100_000, now: second * 1_000 }));
  for (const second of [0, 10, 20, 30, 35, 40, 50, 99.9, 99.95, 100])
    for (const { left, width } of barsAt(second)) expect(left + width, `at ${second} s`).toBeLessThanOrEqual(second + 1e-9);
  expect(barsAt(5)).toEqual([]);
  expect(barsAt(20)).toEqual([{ left: 10, width: 10, state: "begun", says: "10 s" }]);
  expect(barsAt(35).map(({ left, width, state }) => [left, width, state])).toEqual([[10, 20, "failed"]]);
  expect(barsAt(50).map(({ state }) => state)).toEqual(["failed", "begun"]);
  expect(runAt(run, 20_000).steps[0]?.attempts).toBe(1);
  // Also if the end of the last attempt is only known from the step itself.
  const unwritten = { ...step, tries: [{ startedAt: at(40), finishedAt: null, error: null }] } as unknown as RunStep;
  const [bar] = barsOf(unwritten, { begin: 0, end: 100_000, now: 50_000 });
  expect([bar?.left, Math.round(bar?.width ?? 0)]).toEqual([40, 10]);
});

test("an approval is void once its loop approved another state, its stream went on, or its reviewer had to look again", () => {
  const tree = (letter: string) => letter.repeat(40);
  const loop = (more: object) =>
    ({ key: "i/review:r", agent: "r", stream: 1, outcome: "approved", reviews: 1, approved: tree("a"), ...more }) as ReviewLoop;
  const run = (loops: ReviewLoop[], now = tree("a")) => ({ loops, streams: [{ number: 1, tree: now }] }) as unknown as Run;
  const voided = (of: Run) => approvalsOf(of, of.loops[0]!).map((each) => each.voided);
  expect(voided(run([loop({})]))).toEqual([false]);
  expect(voided(run([loop({})], tree("b")))).toEqual([true]);
  const approvals = [
    { round: 1, saw: tree("b") },
    { round: 2, saw: tree("a") },
  ];
  expect(voided(run([loop({ approvals })]))).toEqual([true, false]);
  expect(voided(run([loop({}), loop({ key: "x/again/review:r", stream: null })]))).toEqual([true]);
});

test("the map of a wiki has a spot for every linked page and for those nobody wrote, however many there are", () => {
  const page = (name: string, links: string[]) => ({
    path: `pages/${name}.md`,
    title: name,
    links: links.map((to) => `pages/${to}.md`),
  });
  const small = drawMap([page("a", ["b", "x"]), page("b", ["a"]), page("c", [])]);
  expect(small.spots.map(({ title, missing }) => [title, missing])).toEqual([
    ["a", false],
    ["b", false],
    ["x", true],
  ]);
  expect([small.lines.length, small.alone.map(({ title }) => title)]).toEqual([3, ["c"]]);
  const large = drawMap(
    Array.from({ length: 2_800 }, (_, at) => page(`f${at % 7}/p${at}`, [`f${(at + 1) % 7}/p${(at + 1) % 2_800}`])),
  );
  expect(large.spots.length).toBe(2_800);
  expect(new Set(large.spots.map(({ x, y }) => `${x} ${y}`)).size).toBe(2_800);
});

test("on a phone the links of the map lead down, with three pages side by side in its width", () => {
  const page = (name: string, links: string[]) => ({ path: `pages/${name}.md`, title: name, links });
  const map = drawMap([page("a", ["pages/d.md"]), page("b", ["pages/d.md"]), page("c", ["pages/d.md"]), page("d", [])], true);
  expect(map.width).toBeLessThan(390 - 16);
  expect(new Set(map.spots.slice(0, 3).map(({ y }) => y)).size).toBe(1);
  expect(map.spots[3]!.y).toBeGreaterThan(map.spots[0]!.y + map.spot.height);
  expect(map.lines.length).toBe(3);
});

test.each([
  [5_200, ["0", "2 s", "4 s"]],
  [2_200, ["0", "500 ms", "1 s", "1.5 s", "2 s"]],
  [9_000, ["0", "2 s", "4 s", "6 s", "8 s"]],
  [400, ["0", "100 ms", "200 ms", "300 ms", "400 ms"]],
  [200 * 60_000, ["0", "1 h", "2 h", "3 h"]],
])("a timeline of %i ms is marked where one would", (span, words) => {
  const marks = marksOf(span);
  expect(marks.map((mark) => mark.words)).toEqual(words);
  expect(marks.at(-1)!.left).toBeLessThanOrEqual(100);
});

describe("small things of the page", () => {
  test("boxes of a list of things to do are drawn, and only at the beginning of an item", () => {
    const html = renderMarkdown("- [x] done\n- [ ] open\n\nNot [x] here\n\n[x] nor here\n");
    expect(html).toContain("☑ done");
    expect(html).toContain("☐ open");
    expect(html).toContain("Not [x] here");
    expect(html).toContain("<p>[x] nor here");
  });

  test("an answer that is nothing but JSON is drawn as code over several lines, and one that only looks like it as it stands", () => {
    const html = renderMarkdown('[{"id":"T1","title":"~~~"}]');
    const text = html.replace(/<[^>]+>/g, "").replaceAll("&quot;", '"');
    expect(html).toMatch(/^<pre><code class="language-json">/);
    expect(text.trim()).toBe('[\n  {\n    "id": "T1",\n    "title": "~~~"\n  }\n]');
    expect(renderMarkdown("[the guide](https://example.org) {of 2026}")).toContain("<p><a ");
    expect(renderMarkdown("{ not json }")).toBe("<p>{ not json }</p>\n");
    expect(renderMarkdown('It says `{"a":1}`.')).toContain("<p>It says");
  });

  test("of a table that is on its way only whole rows are drawn; other text is drawn as it comes", () => {
    expect(withoutUnfinishedRow("Words\n\n| a |\n| - |\n| 1 |\n| 2")).toBe("Words\n\n| a |\n| - |\n| 1 |");
    expect(withoutUnfinishedRow("Words\n\n| a |\n| -")).toBe("Words\n\n");
    expect(withoutUnfinishedRow("| a")).toBe("");
    expect(withoutUnfinishedRow("a | b")).toBe("a | b");
    expect(withoutUnfinishedRow("| a |\n| - |\n\nAfter")).toBe("| a |\n| - |\n\nAfter");
  });

  test("a name always has the same face, and names differ", () => {
    expect(faceOf("Hannibal")).toEqual(faceOf(" hannibal"));
    expect(
      new Set(["Hannibal", "Murdock", "B.A.", "Face", "Amy", "Lynch"].map((name) => JSON.stringify(faceOf(name)))).size,
    ).toBe(6);
  });

  test("a new conversation is named by its minute, and never like one that is there", () => {
    const now = new Date(2026, 10, 8, 9, 5);
    expect(freshName([], now)).toBe("nov08-0905");
    expect(freshName(["nov08-0905", "nov08-0905-2"], now)).toBe("nov08-0905-3");
  });

  test("streams are drawn from the first down, however the run lists them", () => {
    const streams = [3, 1, 2].map((number) => ({ number, task: `Task ${number}`, status: "done" }));
    const steps = streams.map(({ number }) => ({
      key: `implement/${number}`,
      phase: "implement",
      stream: number,
      state: "done",
      agent: "engineer",
    }));
    const phases = [{ name: "implement", status: "done", reason: null }];
    const { nodes } = drawRun({ phases, streams, steps, loops: [], outcome: null } as unknown as Run);
    const drawn = nodes.filter(({ kind }) => kind === "stream").sort((a, b) => a.y - b.y);
    expect(drawn.map(({ title }) => title)).toEqual(["1. Task 1", "2. Task 2", "3. Task 3"]);
  });
});
