import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type ChatRequest, type Model, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Squad, Task } from "../../src/protocol/squads.ts";
import { approvalsOf, asked, decide, finishedMessage, finishedTask } from "../support/approvals.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { stepwise, systemOf } from "../support/orchestrator.ts";
import { ensureProgram } from "../support/program.ts";

await ensureProgram("bwrap", "bubblewrap");
const home = temporaryHome({ mode: "auto" }, afterAll);
/** A squad's agent that tries to write in both ways, then repeats the results. */
const agent: Model = ({ messages }) => {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const results = messages.slice(asked).flatMap((each) => (each.role === "tool" ? [textOf(each)] : []));
  const calls: Calls = [write("made.txt"), shell("touch made-too.txt")];
  return results.length > 0 ? { say: results.join("\n") } : { call: calls.map(([tool, args]) => ({ tool, args })) };
};
const isOrchestrator = (request: ChatRequest) => systemOf(request).startsWith("You are IO,");
const model = await scriptedModel((...given) => (isOrchestrator(given[0]) ? stepwise : agent)(...given), undefined, afterAll);
const userHome = realpathSync(temporaryFolder(afterAll));
const project = join(userHome, "project");
mkdirSync(join(project, "inner"), { recursive: true });
const daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), HOME: userHome }, afterAll);

type Calls = [string, unknown][];
let conversations = 0;
const say = async (calls: Calls, { folder = project, on = daemon }: { folder?: string | null; on?: TestDaemon } = {}) => {
  conversations += 1;
  const message = { text: `calls ${JSON.stringify(calls)}`, conversation: `c${conversations}`, ...(folder && { folder }) };
  return (await on.json<{ id: string }>("POST", "/api/messages", message)).id;
};
const reply = async (calls: Calls, options: Parameters<typeof say>[1] = {}) =>
  (await finishedMessage(options.on ?? daemon, await say(calls, options))).reply!;
const setMode = (mode: string | null) => daemon.json("PATCH", "/api/config", { mode });
const shell = (command: string, more: Record<string, unknown> = {}): [string, unknown] => ["shell", { command, ...more }];
const write = (path: string): [string, unknown] => ["file_ops", { operation: "write", path, content: "x" }];

test("in auto, what stays in the project is done unasked, and the sandbox tells the model how to ask for more", async () => {
  const outside = join(userHome, "outside.txt");
  const calls: Calls = [
    shell("echo a > made.txt && cat made.txt && echo temp > /tmp/t && cat /tmp/t"),
    write("inner/file.txt"),
    shell(`echo x > ${outside}`),
  ];
  const told = await reply(calls);
  expect(readFileSync(join(project, "made.txt"), "utf8")).toBe("a\n");
  expect(existsSync(join(project, "inner/file.txt"))).toBe(true);
  expect(existsSync(outside)).toBe(false);
  expect(told).toContain(`The sandbox refused this: commands write in ${project}`);
  expect(told).toContain("outside: true, and a person is asked");
  const piped = await reply([shell(`touch ${outside} 2>&1 | tail`)]);
  expect(piped).toContain("exit code: 0");
  expect(piped).toContain(`The sandbox may have refused a part of this: commands write in ${project}`);
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("in auto, a person is asked about the very command that wants out, and the question says what it names", async () => {
  const outside = join(userHome, "allowed.txt");
  const id = await say([shell(`touch ${outside}`, { outside: true })]);
  const [question] = await asked(daemon);
  expect(question).toMatchObject({
    tool: "shell",
    command: `touch ${outside}`,
    rule: `wall: it wants to run outside the sandbox, and names ${outside}`,
  });
  expect(question!.scopes.map(({ scope }) => scope)).toEqual(["once"]);
  expect(existsSync(outside)).toBe(false);
  await decide(daemon, question!.id, { decision: "allow" });
  await finishedMessage(daemon, id);
  expect(existsSync(outside)).toBe(true);
  // IO's own folder stays hidden even outside the sandbox.
  const other = await say([shell(`cat ${home}/token; echo done`, { outside: true })]);
  const [second] = await asked(daemon);
  await decide(daemon, second!.id, { decision: "allow" });
  const { reply: seen } = await finishedMessage(daemon, other);
  expect(seen).toContain("done");
  expect(seen).not.toContain(daemon.token);
});

test("in auto, folders and links of the project are moved and deleted unasked; of a folder outside a person decides", async () => {
  const make = (folder: string) => mkdirSync(join(folder, "inner"), { recursive: true });
  const outside = join(userHome, "old");
  for (const folder of [join(project, "old"), join(project, "named"), outside]) make(folder);
  symlinkSync(outside, join(project, "link"));
  const remove = (path: string): [string, unknown] => ["file_ops", { operation: "delete", path }];
  const move = (path: string, to: string): [string, unknown] => ["file_ops", { operation: "move", path, to }];
  const told = await reply([
    move("named", "renamed"),
    remove("old/"),
    move("link", "other"),
    remove("other"),
    move("renamed", "renamed/x"),
  ]);
  expect(told).toContain("Moved named to renamed.");
  expect(told).toContain("Deleted the folder old/ with all that was in it.");
  expect(told).toContain("Deleted other.");
  expect(told).toContain("renamed cannot be moved into itself.");
  expect(["old", "named", "link", "other"].filter((name) => existsSync(join(project, name)))).toEqual([]);
  expect([existsSync(join(project, "renamed/inner")), existsSync(join(outside, "inner"))]).toEqual([true, true]);
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
  const id = await say([remove(outside)]);
  const [question] = await asked(daemon);
  expect(question!.rule).toContain(`it would delete ${outside}, outside ${project}`);
  await decide(daemon, question!.id, { decision: "allow" });
  expect((await finishedMessage(daemon, id)).reply).toContain("Deleted the folder");
  expect(existsSync(outside)).toBe(false);
});

test("in auto, a file outside is written only after a person allowed it, and a denied one is not there", async () => {
  const outside = join(userHome, "denied.txt");
  const id = await say([write(outside)]);
  const [question] = await asked(daemon);
  expect(question!.rule).toContain(`it would write ${outside}, outside ${project}`);
  await decide(daemon, question!.id, { decision: "deny" });
  await finishedMessage(daemon, id);
  expect(existsSync(outside)).toBe(false);
});

test("in auto, a person is asked before keys are read, also where a link leads to them, and a search passes them over", async () => {
  const kept = join(userHome, "dotfiles/aws");
  mkdirSync(kept, { recursive: true });
  mkdirSync(join(userHome, ".kube"));
  writeFileSync(join(kept, "credentials"), "aws_secret = hidden-words");
  writeFileSync(join(userHome, "dotfiles/kube.yaml"), "token: hidden-words");
  writeFileSync(join(userHome, "dotfiles/shared.txt"), "no hidden-words here");
  symlinkSync(kept, join(userHome, ".aws"));
  symlinkSync(join(userHome, "dotfiles/kube.yaml"), join(userHome, ".kube/config"));
  for (const path of [join(userHome, ".aws/credentials"), join(kept, "credentials"), join(userHome, ".kube/config")]) {
    const id = await say([["file_ops", { operation: "read", path }]]);
    const [question] = await asked(daemon);
    expect(question!.rule).toBe(`wall: it would read ${realpathSync(path)}, where keys or passwords are kept`);
    await decide(daemon, question!.id, { decision: "deny" });
    expect((await finishedMessage(daemon, id)).reply).not.toContain("hidden-words");
  }
  const search = { operation: "search", path: join(userHome, "dotfiles"), query: "hidden-words" };
  const found = await reply([["file_ops", search]]);
  expect(found).toContain("no hidden-words here");
  expect(found).not.toMatch(/aws_secret|token:/);
});

test("a conversation without a folder, or in the home itself, works in a folder of its own", async () => {
  for (const folder of [null, userHome]) {
    const told = await reply([shell("pwd; touch here.txt"), write("there.txt")], { folder });
    const own = join(realpathSync(home), "work", `c${conversations}`);
    expect(told).toContain(own);
    expect(existsSync(join(own, "here.txt"))).toBe(true);
    expect(existsSync(join(own, "there.txt"))).toBe(true);
  }
  // A conversation may not write to the folder of another.
  const told = await reply([write(join(realpathSync(home), "work", `c${conversations}`, "there.txt"))], { folder: null });
  expect(told).toContain("lies in the data folder");
});

test("a folder inside a checkout works on all of it", async () => {
  const checkout = join(userHome, "checkout");
  mkdirSync(join(checkout, "packages/one"), { recursive: true });
  const told = await reply(
    [shell("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && echo made")],
    {
      folder: checkout,
    },
  );
  expect(told).toContain("made");
  const commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m second && touch ../../top && echo committed";
  expect(await reply([shell(commit)], { folder: join(checkout, "packages/one") })).toContain("committed");
  expect(existsSync(join(checkout, "top"))).toBe(true);
});

test("in plan, no tool with an effect is offered, and one that is called all the same changes nothing", async () => {
  await setMode("plan");
  writeFileSync(join(project, "read.txt"), "words to read");
  const told = await reply([
    ["file_ops", { operation: "read", path: "read.txt" }],
    write("planned.txt"),
    ["wiki_write", { path: "a", content: "x" }],
  ]);
  expect(told).toContain("words to read");
  const request = model.requests.at(-1)!;
  const names = (request.tools ?? []).map(({ function: { name } }) => name);
  expect(names).toContain("file_ops");
  expect(names).toContain("wiki_read");
  for (const effect of ["shell", "wiki_write", "squad_delegate", "config_update", "swarm_run"])
    expect(names).not.toContain(effect);
  const files = request.tools!.find(({ function: { name } }) => name === "file_ops");
  expect(JSON.stringify(files)).not.toContain('"write"');
  expect(systemOf(request)).toContain("The user chose to plan");
  expect(existsSync(join(project, "planned.txt"))).toBe(false);
  expect(existsSync(join(home, "wiki/pages/a.md"))).toBe(false);
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("in ask, every effect waits for a person, and an allowed command still stays in the project", async () => {
  await setMode("ask");
  const outside = join(userHome, "asked.txt");
  const id = await say([
    ["file_ops", { operation: "read", path: "read.txt" }],
    write("asked.txt"),
    shell(`touch command.txt; touch ${outside}`),
  ]);
  const [first] = await asked(daemon);
  expect(first).toMatchObject({ tool: "file_ops" });
  expect(existsSync(join(project, "asked.txt"))).toBe(false);
  await decide(daemon, first!.id, { decision: "allow" });
  const [second] = await asked(daemon);
  expect(second).toMatchObject({ tool: "shell" });
  expect(existsSync(join(project, "asked.txt"))).toBe(true);
  expect(existsSync(join(project, "command.txt"))).toBe(false);
  await decide(daemon, second!.id, { decision: "allow" });
  const { reply: told } = await finishedMessage(daemon, id);
  expect(existsSync(join(project, "command.txt"))).toBe(true);
  expect(existsSync(outside)).toBe(false);
  expect(told).toContain("The sandbox refused this");
});

test("in full nobody is asked; sandbox and approvals set by hand stand above the mode", async () => {
  await setMode("full");
  const outside = join(userHome, "full.txt");
  await reply([shell(`touch ${outside}`), write(join(userHome, "full-too.txt"))]);
  expect(existsSync(outside)).toBe(true);
  expect(existsSync(join(userHome, "full-too.txt"))).toBe(true);
  await daemon.json("PATCH", "/api/config", { sandbox: "project" });
  const told = await reply([shell(`touch ${outside}-2`), shell(`touch ${outside}-3`, { outside: true })]);
  expect(existsSync(`${outside}-2`)).toBe(false);
  expect(existsSync(`${outside}-3`)).toBe(false);
  expect(told).toContain("no person is asked here");
  await daemon.json("PATCH", "/api/config", { mode: "ask", sandbox: "secrets", approvals: "none" });
  await reply([shell(`touch ${outside}-4`)]);
  expect(existsSync(`${outside}-4`)).toBe(true);
  await daemon.json("PATCH", "/api/config", { mode: "auto", sandbox: null, approvals: null });
});

test("a conversation has a mode of its own, stricter or looser, from its next message on", async () => {
  const talk = async (calls: Calls) => {
    const message = { text: `calls ${JSON.stringify(calls)}`, conversation: "own-mode", folder: project };
    return (await daemon.ask(message)).reply!;
  };
  await daemon.json("PATCH", "/api/conversations/own-mode", { mode: "plan" });
  await talk([write("own-plan.txt")]);
  expect(existsSync(join(project, "own-plan.txt"))).toBe(false);
  await daemon.json("PATCH", "/api/conversations/own-mode", { mode: "full" });
  await talk([write(join(userHome, "own-full.txt"))]);
  expect(existsSync(join(userHome, "own-full.txt"))).toBe(true);
  await daemon.json("PATCH", "/api/conversations/own-mode", { mode: null, folder: join(project, "inner") });
  expect(await talk([shell("pwd"), shell(`touch ${userHome}/own-auto.txt`)])).toContain(join(project, "inner"));
  expect(existsSync(join(userHome, "own-auto.txt"))).toBe(false);
});

test("a squad can be stricter than everything and not looser", async () => {
  const squad = join(userHome, "squad");
  mkdirSync(squad);
  await daemon.json("POST", "/api/squads", { name: "app", projectPath: squad });
  await daemon.json("POST", "/api/squads/app/agents", { roleTitle: "Engineer", charter: "writes code" });
  const looser = await runIo(["squad", "set", "app", "--mode", "full"], home);
  expect(looser.code).not.toBe(0);
  expect(looser.stderr).toContain("mode: full is looser than auto, which holds for all.");
  expect((await runIo(["squad", "set", "app", "--mode", "plan"], home)).stdout).toContain("mode plan");
  expect((await daemon.json<Squad>("GET", "/api/squads/app")).safety).toEqual({ mode: "plan" });
  const work = async () => finishedTask(daemon, (await daemon.json<Task>("POST", "/api/squads/app/tasks", { task: "write" })).id);
  expect((await work()).status).toBe("done");
  expect(existsSync(join(squad, "made.txt"))).toBe(false);
  expect(existsSync(join(squad, "made-too.txt"))).toBe(false);
  await runIo(["squad", "set", "app", "--mode", "default"], home);
  expect((await work()).status).toBe("done");
  expect(existsSync(join(squad, "made.txt"))).toBe(true);
  expect(existsSync(join(squad, "made-too.txt"))).toBe(true);

  for (const [flag, looserValue, all] of [
    ["sandbox", "secrets", "project"],
    ["approvals", "none", "wall"],
  ] as const) {
    const { code, stderr } = await runIo(["squad", "set", "app", `--${flag}`, looserValue], home);
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(`${flag}: ${looserValue} is looser than ${all}`)]);
  }
  // A squad's mode that was as strict as the global one when it was set does not weaken a stricter global mode set later.
  for (const name of ["made.txt", "made-too.txt"]) rmSync(join(squad, name));
  await runIo(["squad", "set", "app", "--mode", "auto"], home);
  await runIo(["config", "set", "mode", "ask"], home);
  const { id } = await daemon.json<Task>("POST", "/api/squads/app/tasks", { task: "write" });
  expect((await asked(daemon))[0]?.owner).toMatchObject({ kind: "task", id });
  await daemon.json("POST", `/api/tasks/${id}/cancel`);
  expect(existsSync(join(squad, "made.txt"))).toBe(false);
  expect(existsSync(join(squad, "made-too.txt"))).toBe(false);
  await runIo(["config", "set", "mode", "auto"], home);
});

test("io config reads and writes what a person may set, a running daemon follows, and a bad file does not end it", async () => {
  const config = (...args: string[]) => runIo(["config", ...args], home);
  expect(await config("set", "mode", "plan")).toMatchObject({ code: 0, stdout: "mode = plan\n" });
  await reply([write("configured.txt")]);
  expect(existsSync(join(project, "configured.txt"))).toBe(false);
  expect(await config("set", "mode", "auto", "--json")).toMatchObject({ code: 0, stdout: '"auto"\n' });
  await reply([write("configured.txt")]);
  expect(existsSync(join(project, "configured.txt"))).toBe(true);
  expect(await config("get", "mode")).toMatchObject({ code: 0, stdout: "auto\n" });
  expect(await config("set", "retention.eventsDays", "7")).toMatchObject({ code: 0 });
  expect((await config("get", "retention.eventsDays")).stdout).toBe("7\n");
  expect((await config("set", "retention", "null")).code).toBe(0);
  expect(await config("set", "mode", "fast")).toMatchObject({ code: 2, stderr: expect.stringContaining("mode:") });
  expect(await config("get", "mood")).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean "mode"?') });
  const listed = JSON.parse((await config("list", "--json")).stdout) as Record<string, unknown>;
  expect(listed).toMatchObject({ mode: "auto", telegramBotToken: { set: false } });
  const file = join(home, "config.json");
  const before = readFileSync(file, "utf8");
  writeFileSync(file, "{ broken");
  expect(await config("set", "mode", "plan")).toMatchObject({ code: 2, stderr: expect.stringContaining("not valid JSON") });
  expect(readFileSync(file, "utf8")).toBe("{ broken");
  expect((await daemon.json<{ mode: string }>("GET", "/api/status")).mode).toBe("auto");
  writeFileSync(file, before);
  const alone = temporaryHome();
  expect(await runIo(["config", "set", "defaultModel", "5"], alone)).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(join(alone, "config.json"), "utf8"))).toEqual({ defaultModel: "5" });
});

test("/mode tells and sets the mode of the conversation, and the welcome and io setup name it", async () => {
  const said = (line: string) => runIo(["--conversation", "main"], home, {}, `${line}\n`);
  expect((await said("/mode")).stdout).toContain("This conversation is in the mode auto: IO works in the project unasked");
  expect((await said("/mode plan")).stdout).toContain("in the mode plan");
  expect(await daemon.json("GET", "/api/conversations/main")).toMatchObject({ mode: "plan" });
  expect((await said("/mode next")).stdout).toContain("in the mode ask");
  expect((await said("/mode fast")).stdout).toContain('"fast" is no mode: plan, ask, auto, full.');
  await runIo(["--conversation", "main", "--mode", "ask"], home, {}, "/mode\n");
  expect(await daemon.json("GET", "/api/conversations/main")).toMatchObject({ mode: "ask" });
  expect(await runIo(["--mode", "fast"], home)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("plan, ask, auto, full"),
  });
  await daemon.json("PATCH", "/api/conversations/main", { mode: null });
  expect((await runIo(["status"], home)).stdout).toContain("Mode auto: IO works in the project unasked");
  const { stdout } = await runIo(["setup", "--yes"], temporaryHome({ mode: "ask" }));
  expect(stdout).toContain("Mode ask: IO asks you before everything that has an effect (io config set mode");
});

test("IO_MODE stands above the file, and a wrong one ends the start with what is allowed", async () => {
  const other = temporaryHome({ mode: "plan" });
  const wrong = await runIo(["--daemon"], other, { IO_MODE: "fast" });
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('IO_MODE: "fast" is no mode. Allowed: plan, ask, auto, full.'),
  });
  const second = await startDaemonProcess(other, { ...providerEnvironment(model.url), HOME: userHome, IO_MODE: "full" });
  await reply([shell("touch by-variable.txt")], { on: second });
  expect(existsSync(join(project, "by-variable.txt"))).toBe(true);
  expect(await second.json("GET", "/api/config")).toMatchObject({ mode: "full" });
});
