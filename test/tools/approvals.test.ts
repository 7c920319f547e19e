import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { approvalsOf, asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient, stepwise } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const model = await scriptedModel(
  (request, index) => (/calls \[/.test(JSON.stringify(request.messages)) ? stepwise : obedient)(request, index),
  undefined,
  afterAll,
);
const home = temporaryHome({ mode: "full", approvals: "effects" }, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
let conversations = 0;
const configure = (config: Record<string, unknown>) => daemon.json("PATCH", "/api/config", config);
/** Sends a message in a new conversation. */
const say = async (text: string) => {
  conversations += 1;
  return (await daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation: `c${conversations}` })).id;
};
const questionsOf = async (id: string) => (await approvalsOf(daemon)).filter(({ owner }) => owner.id === id);
const append = (file: string, line: string) => callText("shell", { command: `echo ${line} >> ${file}` });
const linesIn = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);

test("before an effect a person sees what, where and why, and it is done once when they allow it", async () => {
  const file = join(temporaryFolder(), "out");
  const follower = await daemon.follow();
  const id = await say(append(file, "one"));
  const [question] = await asked(daemon);
  expect(question).toMatchObject({
    kind: "call",
    owner: { kind: "message", id },
    conversation: `c${conversations}`,
    actor: "orchestrator",
    tool: "shell",
    command: `echo one >> ${file}`,
    cwd: daemon.home,
    state: "waiting",
    rule: expect.stringMatching(/^effects: /),
  });
  expect(question!.id).toMatch(/^[a-hjkmnp-z2-9]{5}$/);
  expect(linesIn(file)).toEqual([]);
  expect(journalOf(daemon.home, id)).toEqual([]);
  expect(follower.of("approval.asked").map(({ body }) => body.id)).toEqual([question!.id]);
  expect((await daemon.json<{ counts: Record<string, number> }>("GET", "/api/status")).counts.approvalsWaiting).toBe(1);

  const answer = await decide(daemon, question!.id, { decision: "allow" });
  expect(await answer.json()).toMatchObject({ state: "allowed", scope: "once", decidedBy: "api" });
  expect((await finishedMessage(daemon, id)).reply).toContain("exit code: 0");
  expect(linesIn(file)).toEqual(["one"]);
  expect(journalOf(daemon.home, id)).toEqual([{ tool: "shell", state: "done" }]);
  expect(follower.of("approval.decided").map(({ body }) => body.state)).toEqual(["allowed"]);
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("what is denied is not run, the model reads the note, and the same call is not asked about again, while another is", async () => {
  const file = join(temporaryFolder(), "out");
  const call = ["shell", { command: `echo no >> ${file}` }];
  const id = await say(`calls ${JSON.stringify([call, call, ["shell", { command: "true" }]])}`);
  const [question] = await asked(daemon);
  expect(question!.reason).toBe("Step 1.");
  await decide(daemon, question!.id, { decision: "deny", note: "use the wiki" });
  const [other] = await asked(daemon);
  expect(other!.command).toBe("true");
  await decide(daemon, other!.id, { decision: "allow" });
  const { reply } = await finishedMessage(daemon, id);
  expect(reply!.match(/a person was asked and denied it\. The person says: "use the wiki"/g)).toHaveLength(2);
  expect(linesIn(file)).toEqual([]);
  expect(await questionsOf(id)).toHaveLength(2);
});

test("what was allowed once is asked about again, and so are other arguments", async () => {
  const file = join(temporaryFolder(), "out");
  const call = (line: string) => ["shell", { command: `echo ${line} >> ${file}` }];
  const id = await say(`calls ${JSON.stringify([call("a"), call("a"), call("b")])}`);
  for (const line of ["a", "a", "b"]) {
    const [question] = await asked(daemon);
    expect(question!.command).toContain(`echo ${line} `);
    await decide(daemon, question!.id, { decision: "allow" });
  }
  await finishedMessage(daemon, id);
  expect(linesIn(file)).toEqual(["a", "a", "b"]);
  expect(await questionsOf(id)).toHaveLength(3);
});

test("nobody answers in time: that is a denial, and the model is told", async () => {
  const file = join(temporaryFolder(), "out");
  await configure({ approvalExpiresMs: 700 });
  const id = await say(append(file, "late"));
  const [question] = await asked(daemon);
  expect((await finishedMessage(daemon, id)).reply).toContain("nobody answered in time");
  await configure({ approvalExpiresMs: null });
  expect(linesIn(file)).toEqual([]);
  const late = await decide(daemon, question!.id, { decision: "allow" });
  expect(late.status).toBe(409);
  expect(JSON.stringify(await late.json())).toContain("is expired already");
});

test("whoever let a question expire is not asked the same again by the same message", async () => {
  const file = join(temporaryFolder(), "out");
  const call = (line: string) => ["shell", { command: `echo ${line} >> ${file}` }];
  await configure({ approvalExpiresMs: 700 });
  const id = await say(`calls ${JSON.stringify([call("a"), call("a"), call("b")])}`);
  await finishedMessage(daemon, id);
  await configure({ approvalExpiresMs: null });
  expect((await questionsOf(id)).map(({ command, state }) => [command, state]).sort()).toEqual([
    [expect.stringContaining("echo a"), "expired"],
    [expect.stringContaining("echo b"), "expired"],
  ]);
  expect(linesIn(file)).toEqual([]);
});

test("a cancelled message takes its question along, and so does a stop of everything", async () => {
  const file = join(temporaryFolder(), "out");
  const withdrawn = (id: string) =>
    until("the question to be withdrawn", async () => (await questionsOf(id)).every(({ state }) => state === "withdrawn"));
  const id = await say(append(file, "never"));
  const [question] = await asked(daemon);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await withdrawn(id);
  expect((await decide(daemon, question!.id, { decision: "allow" })).status).toBe(409);
  const other = await say(append(file, "never"));
  await asked(daemon);
  await daemon.json("POST", "/api/stop");
  await withdrawn(other);
  expect(linesIn(file)).toEqual([]);
});

test("neither the silence nor the cap of a turn runs while a person is waited for", async () => {
  await configure({ turnCapMs: 2_000, turnSilenceMs: 1_000 });
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "patient"));
  const [question] = await asked(daemon);
  const since = Date.parse(question!.createdAt);
  await until("4 seconds of waiting", () => Date.now() - since > 4_000);
  await decide(daemon, question!.id, { decision: "allow" });
  expect(await finishedMessage(daemon, id)).toMatchObject({ status: "done" });
  expect(linesIn(file)).toEqual(["patient"]);
  await configure({ turnCapMs: null, turnSilenceMs: null });
});

test("ten at once are answered in another order, each for its own call", async () => {
  const folder = temporaryFolder();
  const all = Array.from({ length: 10 }, (_, index) => ({ command: `echo ${index} >> ${join(folder, `f${index}`)}` }));
  const id = await say(`call shell ${JSON.stringify(all)}`);
  const questions = await asked(daemon, 10);
  expect(new Set(questions.map(({ id: each }) => each)).size).toBe(10);
  const order = [...questions.keys()].sort((a, b) => ((a * 7) % 10) - ((b * 7) % 10));
  for (const at of order) {
    const { id: each, command } = questions[at]!;
    const decision = Number(/echo (\d)/.exec(command!)![1]) % 2 === 0 ? "allow" : "deny";
    expect((await decide(daemon, each, { decision })).status).toBe(200);
  }
  await finishedMessage(daemon, id);
  for (let index = 0; index < 10; index += 1)
    expect(linesIn(join(folder, `f${index}`))).toEqual(index % 2 === 0 ? [String(index)] : []);
  const results = model.requests.at(-1)!.messages.filter(({ role }) => role === "tool");
  expect(results.map((result) => textOf(result).includes("exit code: 0"))).toEqual(all.map((_, index) => index % 2 === 0));
});

test("two identical calls at once are two questions", async () => {
  const file = join(temporaryFolder(), "out");
  const args = { command: `echo twin >> ${file}` };
  const id = await say(`call shell ${JSON.stringify([args, args])}`);
  const [second, first] = await asked(daemon, 2);
  await decide(daemon, first!.id, { decision: "allow" });
  await decide(daemon, second!.id, { decision: "deny" });
  await finishedMessage(daemon, id);
  expect(linesIn(file)).toEqual(["twin"]);
});

test("of two people who decide at once one wins, and the other is told 409", async () => {
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "once"));
  const [question] = await asked(daemon);
  const answers = await Promise.all(
    ["allow", "deny", "allow", "deny"].map((decision) => decide(daemon, question!.id, { decision })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  await finishedMessage(daemon, id);
  const [won] = await questionsOf(id);
  expect(linesIn(file)).toEqual(won!.state === "allowed" ? ["once"] : []);
});
