import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { approvalsOf, asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const begin = async (config: Record<string, unknown>) => {
  const model = await scriptedModel(obedient);
  const home = temporaryHome(config);
  const start = () => startDaemonProcess(home, providerEnvironment(model.url));
  const daemon = await start();
  const say = (text: string, conversation = "main", from: TestDaemon = daemon) =>
    from.json<{ id: string }>("POST", "/api/messages", { text, conversation }).then(({ id }) => id);
  return { model, home, start, daemon, say };
};
const append = (file: string, line: string) => callText("shell", { command: `echo ${line} >> ${file}` });
const linesIn = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);

test("before an effect a person sees what, where and why, and it is done once when they allow it", async () => {
  const { daemon, home, say } = await begin({ approvals: "effects" });
  const file = join(temporaryFolder(), "out");
  const follower = await daemon.follow();
  const id = await say(append(file, "one"));
  const [question] = await asked(daemon);
  expect(question).toMatchObject({
    kind: "call",
    owner: { kind: "message", id },
    conversation: "main",
    actor: "orchestrator",
    tool: "shell",
    command: `echo one >> ${file}`,
    cwd: home,
    state: "waiting",
    rule: expect.stringMatching(/^effects: /),
  });
  expect(question!.id).toMatch(/^[a-hjkmnp-z2-9]{5}$/);
  expect(linesIn(file)).toEqual([]);
  expect(journalOf(home, id)).toEqual([]);
  expect(follower.of("approval.asked").map(({ body }) => body.id)).toEqual([question!.id]);
  expect((await daemon.json<{ counts: Record<string, number> }>("GET", "/api/status")).counts.approvalsWaiting).toBe(1);

  const answer = await decide(daemon, question!.id, { decision: "allow" });
  expect(await answer.json()).toMatchObject({ state: "allowed", scope: "once", decidedBy: "api" });
  expect((await finishedMessage(daemon, id)).reply).toContain("exit code: 0");
  expect(linesIn(file)).toEqual(["one"]);
  expect(journalOf(home, id)).toEqual([{ tool: "shell", state: "done" }]);
  expect(follower.of("approval.decided").map(({ body }) => body.state)).toEqual(["allowed"]);
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("what is denied is not run, the model reads the note, and the same call is not asked about again", async () => {
  const file = join(temporaryFolder(), "out");
  const model = await scriptedModel((request) => {
    const results = request.messages.filter(({ role }) => role === "tool");
    if (results.length < 2)
      return { call: [{ tool: "shell", args: { command: `echo no >> ${file}` } }], say: "I need that line." };
    return { say: results.map(textOf).join("\n") };
  });
  const daemon = await startDaemonProcess(temporaryHome({ approvals: "effects" }), providerEnvironment(model.url));
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "write it" });
  const [question] = await asked(daemon);
  expect(question!.reason).toBe("I need that line.");
  await decide(daemon, question!.id, { decision: "deny", note: "use the wiki" });
  const { reply } = await finishedMessage(daemon, id);
  expect(reply!.match(/a person was asked and denied it\. The person says: "use the wiki"/g)).toHaveLength(2);
  expect(linesIn(file)).toEqual([]);
  expect(await approvalsOf(daemon)).toHaveLength(1);
});

test("nobody answers in time: that is a denial, and the model is told", async () => {
  const { daemon, say } = await begin({ approvals: "effects", approvalExpiresMs: 700 });
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "late"));
  const [question] = await asked(daemon);
  expect((await finishedMessage(daemon, id)).reply).toContain("nobody answered in time");
  expect(linesIn(file)).toEqual([]);
  const late = await decide(daemon, question!.id, { decision: "allow" });
  expect(late.status).toBe(409);
  expect(JSON.stringify(await late.json())).toContain("is expired already");
});

test("a cancelled message takes its question along, and so does a stop of everything", async () => {
  const { daemon, say } = await begin({ approvals: "effects" });
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "never"), "one");
  const [question] = await asked(daemon);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await until("the question to be withdrawn", async () => (await approvalsOf(daemon, "withdrawn")).length === 1);
  expect((await decide(daemon, question!.id, { decision: "allow" })).status).toBe(409);
  await say(append(file, "never"), "two");
  await asked(daemon);
  await daemon.json("POST", "/api/stop");
  await until("the second one too", async () => (await approvalsOf(daemon, "withdrawn")).length === 2);
  expect(linesIn(file)).toEqual([]);
});

test("neither the silence nor the cap of a turn runs while a person is waited for", async () => {
  const { daemon, say } = await begin({ approvals: "effects", turnCapMs: 2_000, turnSilenceMs: 1_000 });
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "patient"));
  const [question] = await asked(daemon);
  const since = Date.parse(question!.createdAt);
  await until("4 seconds of waiting", () => Date.now() - since > 4_000);
  await decide(daemon, question!.id, { decision: "allow" });
  expect(await finishedMessage(daemon, id)).toMatchObject({ status: "done" });
  expect(linesIn(file)).toEqual(["patient"]);
}, 30_000);

test("ten at once are answered in another order, each for its own call", async () => {
  const { daemon, model, say } = await begin({ approvals: "effects" });
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
  const { daemon, say } = await begin({ approvals: "effects" });
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
  const { daemon, say } = await begin({ approvals: "effects" });
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "once"));
  const [question] = await asked(daemon);
  const answers = await Promise.all(
    ["allow", "deny", "allow", "deny"].map((decision) => decide(daemon, question!.id, { decision })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  await finishedMessage(daemon, id);
  const won = (await approvalsOf(daemon))[0]!;
  expect(linesIn(file)).toEqual(won.state === "allowed" ? ["once"] : []);
});

test("a daemon that is stopped in order leaves the question for the next", async () => {
  const { daemon, start, say } = await begin({ approvals: "effects" });
  const file = join(temporaryFolder(), "out");
  const id = await say(append(file, "later"));
  const [question] = await asked(daemon);
  await daemon.kill("SIGTERM");
  const next = await start();
  onTestFinished(() => next.kill("SIGTERM"));
  const [same] = await asked(next);
  expect(same!.id).toBe(question!.id);
  await decide(next, same!.id, { decision: "allow" });
  expect((await finishedMessage(next, id)).status).toBe("done");
  expect(linesIn(file)).toEqual(["later"]);
  expect(await approvalsOf(next)).toHaveLength(1);
});
