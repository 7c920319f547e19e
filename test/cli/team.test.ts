import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Analysis } from "../../src/protocol/analysis.ts";
import type { Agent, Decision, Squad, Task } from "../../src/protocol/squads.ts";
import { runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";

const home = temporaryHome({}, afterAll);
const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" }, afterAll);
const folder = temporaryFolder(afterAll);
const io = (...args: string[]) => runIo(args, home);
const document = async <T>(...args: string[]): Promise<T> => JSON.parse((await io(...args, "--json")).stdout) as T;
const bodyOf = async (method: string, path: string, body?: unknown) =>
  (await daemon.json<{ error: { message: string } }>(method, path, body)).error.message;

test("a squad is made, staffed and told decisions by command; a folder that has one says which", async () => {
  const project = join(folder, "app");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"name": "app", "scripts": {"test": "node --test"}}');
  await document<Squad>("squad", "create", "The App", project, "--universe", "a-team");
  const again = await io("squad", "create", "Another", project);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(/has a squad already.*"the-app" \(The App\)/) });

  for (const [role, tier] of [
    ["Architect", "high"],
    ["Tester", "low"],
    ["Engineer", "medium"],
  ] as const) {
    const added = await document<Agent>("squad", "add-agent", "the-app", role, "--charter", `Is the ${role}.`, "--tier", tier);
    expect(added).toMatchObject({ roleTitle: role, charter: `Is the ${role}.`, modelTier: tier });
  }
  expect((await io("squad", "agents", "the-app")).stdout).toMatch(
    /^Hannibal, Architect \(tier high, idle\)\nFace, .*\nB\.A\. Baracus/,
  );
  expect(await io("squad", "add-agent", "the-app", "Painter")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--charter"),
  });
  expect(await io("squad", "add-agent", "the-app", "P", "--charter", "x", "--tier", "top")).toMatchObject({
    code: 2,
    stderr: 'modelTier: must be one of "high", "medium", "low"\n',
  });

  expect(await document<Decision>("squad", "log-decision", "the-app", "Use tabs", "--context", "we all do")).toMatchObject({
    decision: "Use tabs",
    context: "we all do",
    author: "user",
  });
  await io("squad", "log-decision", "the-app", "Use Postgres");
  const decisions = await document<{ items: Decision[] }>("squad", "decisions", "the-app");
  expect(decisions).toEqual(await daemon.json("GET", "/api/squads/the-app/decisions"));
  expect(decisions.items.map(({ decision }) => decision)).toEqual(["Use Postgres", "Use tabs"]);
  expect((await io("squad", "decisions", "the-app", "--search", "tabs")).stdout).toMatch(
    /^\[.*\] Use tabs \(we all do\) {2}by user\n$/,
  );
  expect((await io("squad", "analyze", project)).stdout).toMatch(
    /app: .*test: npm test, from package\.json\n.*Suggested agents:/s,
  );
});

test("a squad without agents is offered those that fit its project before it is given a task", async () => {
  const project = join(folder, "unstaffed");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"name": "unstaffed", "scripts": {"test": "node --test"}}');
  const { slug } = await document<Squad>("squad", "create", "Unstaffed", project);
  const asked = await io("squad", "delegate", slug, "Say hello");
  expect(asked).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/are suggested:\n {2}.*\(tier .*--yes/s) });
  expect(await document("squad", "agents", slug)).toEqual({ items: [] });
  const task = await document<Task>("squad", "delegate", slug, "Say hello", "--yes");
  const { roster } = await document<Analysis>("squad", "analyze", project);
  const { items } = await document<{ items: Agent[] }>("squad", "agents", slug);
  const roleOf = ({ roleTitle, charter, modelTier }: Pick<Agent, "roleTitle" | "charter" | "modelTier">) => ({
    roleTitle,
    charter,
    modelTier,
  });
  expect(items.map(roleOf)).toEqual(roster.map(roleOf));
  expect(items.map(({ characterName }) => characterName)).toContain(task.agent);
  await document("squad", "delegate", slug, "Say it again", "--yes");
  expect((await document<{ items: Agent[] }>("squad", "agents", slug)).items).toHaveLength(roster.length);
});

test("a person says once how a project is checked, and that is what is told and kept until it is taken back", async () => {
  const project = join(folder, "corrected");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"name": "corrected", "scripts": {"test": "node --test", "lint": "x"}}');
  await io("squad", "create", "Corrected", project);
  const commands = async () =>
    (await document<Analysis>("squad", "analyze", project)).commands.map(({ purpose, command, from }) => [
      purpose,
      command,
      from,
    ]);
  const found = await commands();
  expect(found).toEqual([
    ["test", "npm test", "package.json"],
    ["lint", "npm run lint", "package.json"],
  ]);
  const set = await io("squad", "set", "corrected", "--check", "node --check a.js", "--check", "cd web && npm test");
  expect(set).toMatchObject({ code: 0, stdout: expect.stringContaining("checked with node --check a.js; cd web && npm test") });
  const chosen = [
    ["lint", "node --check a.js", "io squad set corrected"],
    ["test", "cd web && npm test", "io squad set corrected"],
  ];
  writeFileSync(join(project, "Makefile"), "test:\n\ttrue\n");
  expect(await commands()).toEqual(chosen);
  expect((await io("squad", "show", "corrected")).stdout).toContain("Checks: checked with node --check a.js; cd web");
  await io("squad", "set", "corrected", "--isolation", "none");
  expect(await commands()).toEqual(chosen);
  for (const wrong of [["--check", ""], ["--check", "a\nb"], ["--check", "default", "--check", "x"], []])
    expect(await io("squad", "set", "corrected", ...wrong)).toMatchObject({ code: 2, stderr: expect.stringMatching(/check/) });
  expect(await commands()).toEqual(chosen);
  expect((await io("squad", "set", "--help")).stdout).toMatch(/--check <command>.*in\s+place\s+of\s+those\s+that\s+are\s+found/s);
  expect((await io("squad", "set", "corrected", "--check", "default")).stdout).toContain("what is found in the project");
  expect(await commands()).toEqual(found);
});

test("a project of many packages with a long CI is looked at without the daemon standing still, as its watch sees", async () => {
  const project = join(folder, "large");
  const put = (file: string, text: string) => {
    mkdirSync(dirname(join(project, file)), { recursive: true });
    writeFileSync(join(project, file), text);
  };
  for (let at = 0; at < 400; at += 1) put(`crates/c${at}/Cargo.toml`, `[package]\nname = "c${at}"\n`);
  const jobs = Array.from(
    { length: 40 },
    (_, at) => `  j${at}:\n    steps:\n${"      - run: cargo fmt --all --check\n".repeat(12)}`,
  );
  for (let at = 0; at < 20; at += 1) put(`.github/workflows/ci${at}.yml`, `on: push\njobs:\n${jobs.join("")}`);
  const { packages, commands } = await document<Analysis>("squad", "analyze", project);
  expect(packages).toHaveLength(400);
  expect(commands).toContainEqual(expect.objectContaining({ command: "cargo fmt --all --check" }));
});

test("an agent is found by the part of its name that people use, by command and by route", async () => {
  const project = join(folder, "second");
  mkdirSync(project);
  await io("squad", "create", "Second", project, "--universe", "a-team");
  for (const role of ["One", "Two", "Three"]) await io("squad", "add-agent", "second", role, "--charter", "Works.");
  expect(await io("squad", "remove-agent", "second", "B.A.")).toMatchObject({
    code: 0,
    stdout: 'B.A. Baracus has left the squad "second".\n',
  });
  await io("squad", "add-agent", "second", "Three", "--charter", "Works.");
  expect(await daemon.json("DELETE", "/api/squads/second/agents/B.A.")).toMatchObject({ characterName: "B.A. Baracus" });
  expect(await io("squad", "remove-agent", "second", "Nobody")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Its agents: Hannibal (One), Face (Two)."),
  });
});

test("a page that is named like a file of another kind is written and found", async () => {
  expect(await io("wiki", "write", "next.js", "# Next.js\nA framework.")).toMatchObject({ code: 0 });
  expect((await io("wiki", "read", "next.js")).stdout).toBe("# Next.js\nA framework.");
  expect((await io("wiki", "list")).stdout).toContain("pages/next.js.md");
  expect(await daemon.json("GET", "/api/wiki/pages/next.js")).toMatchObject({ path: "pages/next.js.md", title: "Next.js" });
  await io("wiki", "write", "general/main.rs.md", "# Where it starts");
  expect((await io("wiki", "read", "general/main.rs")).stdout).toBe("# Where it starts");
  expect(await io("wiki", "write", "general/notes.txt", "no page")).toMatchObject({ code: 2 });
});

test("what was said can be read again, by conversation", async () => {
  await io("send", "hello", "--conversation", "greetings");
  const list = await document<{ items: { name: string; messages: number }[] }>("conversation", "list");
  expect(list).toEqual(await daemon.json("GET", "/api/conversations"));
  expect(list.items).toContainEqual(expect.objectContaining({ name: "greetings", messages: 1 }));
  expect((await io("conversation", "list")).stdout).toContain("greetings  1 message  last");
  expect(await document("conversation", "show", "greetings", "--limit", "1")).toMatchObject({
    items: [{ text: "hello", status: "done" }],
  });
  expect((await io("conversation", "show", "greetings")).stdout).toMatch(/\[via api\] hello\nHello\./);
  expect(await io("conversation", "show", "nowhere")).toMatchObject({ code: 1, stderr: expect.stringContaining("nowhere") });
  expect(await io("conversation", "show", "greetings", "--limit", "201")).toMatchObject({ code: 2 });
});

test("a request that breaks a rule is told which, without a word of the validator", async () => {
  const told = [
    await bodyOf("POST", "/api/messages", {}),
    await bodyOf("POST", "/api/messages", { text: 5, bogus: true }),
    await bodyOf("GET", "/api/messages?limit=x"),
    await bodyOf("GET", "/api/messages?limit=201"),
    await bodyOf("POST", "/api/squads", { name: "", projectPath: folder }),
    await bodyOf("PUT", "/api/wiki/pages/x", { content: 7 }),
    await bodyOf("PATCH", "/api/config", { port: 70_000, provider: {} }),
  ];
  expect(told).toEqual([
    "text: is missing",
    "text: must be a text; bogus: there is no such field",
    "limit: must be a number",
    "limit: must be at most 200",
    "name: must not be empty",
    'The body must be {"content": "…"} or text/markdown: content: must be a text',
    "config:\n  provider.baseUrl: is missing.\n  port: 70000 is not allowed: it must be at most 65535.",
  ]);
});

test("a command that is not there suggests the nearest, in words and with --json", async () => {
  expect(await io("stauts")).toMatchObject({ code: 2, stderr: expect.stringContaining("(Did you mean status?)") });
  expect(await io("statsu")).toMatchObject({ code: 2, stderr: expect.stringContaining("(Did you mean status?)") });
  expect(await io("squad", "add-agnt", "x")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("(Did you mean add-agent?)"),
  });
  expect((await io("conversatoin", "list", "--json")).stdout).toContain("Did you mean conversation?");
  expect(await io("status", "extra")).toMatchObject({ code: 2 });
  expect(await io("--frob")).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown option '--frob'") });
});

test("an unknown key is answered with those that are known, and a channel without its token is found out", async () => {
  const wrong = await runIo(["--daemon"], temporaryHome({ somethingElse: 1 }));
  expect(wrong.stderr).toContain("Allowed: defaultModel");
  const { stdout } = await runIo(["doctor", "--json"], temporaryHome({ telegramEnabled: true }));
  expect(stdout).toMatch(/config\.json is in order/);
  expect(stdout).toMatch(/telegramEnabled is on, but there is no bot token/);
});
