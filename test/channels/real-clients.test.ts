import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import { type ExecResult, exec } from "../../src/process/exec.ts";
import type { ConversationInfo } from "../../src/protocol/conversations.ts";
import type { MadeClientToken } from "../../src/protocol/tokens.ts";
import { cleanEnvironment, IO, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { odd } from "../support/mcp/servers.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, obedient } from "../support/orchestrator.ts";
import { projectOf } from "../support/project.ts";
import { ensureFromPypi, ensureNodeClients } from "../support/real-clients.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const play: Model = (request, index) => {
  const text = lastUserText(request);
  if (/call \S+ [{[]/.test(text) || request.messages.at(-1)?.role === "tool") return obedient(request, index);
  return { say: ["You ", "said: ", text.split("] ").at(-1) ?? ""] };
};

let daemon: TestDaemon;
let model: ModelServer;
let token: string;
let llm: string;
let clients: Awaited<ReturnType<typeof ensureNodeClients>>;
beforeAll(async () => {
  llm = join(await ensureFromPypi("llm", 600_000), "llm");
  clients = await ensureNodeClients();
  model = await scriptedModel(play, undefined, atTheEnd);
  const models = [{ id: "scripted", contextWindow: 100_000 }];
  const provider = { baseUrl: model.url, apiKey: "scripted-key-0123456789", model: "scripted", models };
  daemon = await startDaemonProcess(temporaryHome({ mode: "auto", provider }, atTheEnd), {}, atTheEnd);
  const made = { name: "tests", for: ["openai", "mcp"] };
  token = (await daemon.json<MadeClientToken>("POST", "/api/tokens", made)).token;
}, 1_300_000);

const failed = ({ code, output }: ExecResult) => `exit ${code}: ${output}`;

test("llm of PyPI is answered in a stream and in one piece, goes on in the same conversation, and is told what is wrong", async () => {
  const folder = temporaryFolder();
  const at = (name: string, base: string) =>
    `- model_id: ${name}\n  model_name: ${name}\n  api_base: "${base}"\n  api_key_name: io\n`;
  writeFileSync(join(folder, "extra-openai-models.yaml"), at("io", `${daemon.url}/v1`) + at("io-light", `${daemon.url}/v1`));
  const run = (args: string[], key = token) =>
    exec(llm, [...args, ...(args[0] === "models" ? [] : ["--key", key])], {
      env: { PATH: process.env.PATH, HOME: folder, LLM_USER_PATH: folder },
      deadlineMs: 120_000,
      input: "",
    });
  const first = await run(["-m", "io", "good morning"]);
  expect(first.stdout.trim(), failed(first)).toBe("You said: good morning");
  expect((await run(["-c", "and a good evening"])).stdout.trim()).toBe("You said: and a good evening");
  expect((await run(["--no-stream", "-m", "io", "-s", "be short", "at once"])).stdout.trim()).toBe("You said: at once");
  const counts = async () =>
    (await daemon.json<{ items: ConversationInfo[] }>("GET", "/api/conversations")).items
      .filter(({ name }) => name.startsWith("oa-"))
      .map(({ messages }) => messages);
  expect(await counts()).toEqual([1, 2]);
  expect((await run(["-m", "io-light", "plainly"])).stdout).toContain("plainly");
  expect(await counts()).toEqual([1, 2]);
  const refused = await run(["-m", "io", "let me in"], "io_wrong");
  expect(refused.code).not.toBe(0);
  expect(refused.output).toContain("io token create");
});

test("the Inspector's command line finds tools, calls them and reads resources, at the address and as a program", async () => {
  await daemon.json("PUT", "/api/wiki/pages/pages/general/tea.md", { content: "# Tea\n\nAt four.\n" });
  const inspect = async (target: string[], ...method: string[]) => {
    const env = {
      ...cleanEnvironment(daemon.home),
      HOME: temporaryFolder(),
      PATH: `${dirname(clients.node)}:${process.env.PATH}`,
    };
    const ran = await exec(clients.node, [clients.inspector, "--cli", ...target, ...method], { env, deadlineMs: 120_000 });
    expect(ran.code, failed(ran)).toBe(0);
    return JSON.parse(ran.stdout) as Record<string, unknown>;
  };
  const byAddress = [`${daemon.url}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${token}`];
  const byProgram = ["-e", `IO_HOME=${daemon.home}`, process.execPath, IO, "mcp"];
  for (const target of [byAddress, byProgram]) {
    const { tools } = (await inspect(target, "--method", "tools/list")) as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).toContain("io_ask");
    const ask = ["--method", "tools/call", "--tool-name", "io_ask", "--tool-arg", "text=hello there"];
    expect(await inspect(target, ...ask)).toMatchObject({
      structuredContent: { status: "done", reply: "You said: hello there" },
    });
    const page = await inspect(target, "--method", "resources/read", "--uri", "io://wiki/pages/general/tea.md");
    expect(JSON.stringify(page)).toContain("At four.");
  }
});

test("acpx is answered; what it approves or denies counts for that call, and a server that it brings is not started unseen", async () => {
  const cwd = projectOf({ "package.json": "{}" });
  const agent = `${process.execPath} ${IO} acp`;
  const run = (flags: string[], words: string) =>
    exec(clients.node, [clients.acpx, "--agent", agent, "--cwd", cwd, "--format", "quiet", ...flags, "exec", words], {
      cwd,
      env: { ...cleanEnvironment(daemon.home), PATH: `${dirname(clients.node)}:${process.env.PATH}` },
      deadlineMs: 180_000,
      input: "",
    });
  const plain = await run([], "good morning");
  expect(plain.stdout, failed(plain)).toContain("You said: good morning");

  const outside = join(temporaryFolder(), "made");
  const make = callText("shell", { command: `touch ${outside}`, outside: true });
  const denied = await run(["--deny-all"], make);
  expect(denied.output, failed(denied)).toContain("a person was asked and denied it");
  expect(existsSync(outside)).toBe(false);
  const allowed = await run(["--approve-all"], make);
  expect(allowed.code, failed(allowed)).toBe(0);
  expect(existsSync(outside)).toBe(true);
  expect((await daemon.json<{ items: unknown[] }>("GET", "/api/approvals/rules")).items).toEqual([]);

  const calls = join(temporaryFolder(), "calls.txt");
  const servers = join(temporaryFolder(), "mcp.json");
  mkdirSync(dirname(servers), { recursive: true });
  const { command, args } = odd("plain", calls);
  writeFileSync(servers, JSON.stringify({ mcpServers: [{ name: "brought", command, args, env: [] }] }));
  const unseen = await run(["--mcp-config", servers, "--deny-all"], "hello");
  expect(unseen.stdout, failed(unseen)).toContain("The MCP server brought is not started.");
  expect(unseen.stdout).toContain("You said: hello");
  expect(existsSync(calls)).toBe(false);
  const seen = await run(["--mcp-config", servers, "--approve-all"], callText("mcp__brought__write", { text: "by acpx" }));
  expect(seen.code, failed(seen)).toBe(0);
  expect(readFileSync(calls, "utf8")).toContain("by acpx");
});
