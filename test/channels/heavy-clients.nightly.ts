import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import { exec, killGroup } from "../../src/process/exec.ts";
import type { ConversationInfo } from "../../src/protocol/conversations.ts";
import type { MadeClientToken } from "../../src/protocol/tokens.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { freePort } from "../support/free-port.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { projectOf } from "../support/project.ts";
import { ensureFromPypi } from "../support/real-clients.ts";
import { until } from "../support/until.ts";

/** Clients with hundreds of packages: Open WebUI takes 7 GB. */
const INSTALL_MS = 3_600_000;

const { atTheEnd, end } = collectEndings();
afterAll(end);

const play: Model = (request) => {
  const text = lastUserText(request);
  if (text.includes("greet the world")) return { say: 'greet.py\n```python\nprint("hello, world")\n```\n' };
  if (text.includes("### Task:")) return { say: '{"title": "Of tea"}' };
  return { say: ["You ", "said: ", text.split("] ").at(-1) ?? ""] };
};

let daemon: TestDaemon;
let token: string;
beforeAll(async () => {
  const model = await scriptedModel(play, undefined, atTheEnd);
  daemon = await startDaemonProcess(temporaryHome({ mode: "auto" }, atTheEnd), providerEnvironment(model.url), atTheEnd);
  token = (await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "tests", for: ["openai"] })).token;
});

test(
  "aider is answered, and makes the change that the answer spells out",
  async () => {
    const aider = join(await ensureFromPypi("aider-chat", INSTALL_MS), "aider");
    const cwd = projectOf({ "greet.py": 'print("hi")\n' });
    const quiet = ["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-git", "--yes-always"];
    const model = ["--model", "openai/io", "--openai-api-base", `${daemon.url}/v1`, "--openai-api-key", token];
    const said = ["--message", "greet the world", "greet.py"];
    const env = { PATH: process.env.PATH, HOME: temporaryFolder() };
    const ran = await exec(aider, [...model, ...quiet, ...said], { cwd, env, deadlineMs: 300_000, input: "" });
    expect(ran.code, ran.output).toBe(0);
    expect(readFileSync(join(cwd, "greet.py"), "utf8"), ran.output).toBe('print("hello, world")\n');
    const { items } = await daemon.json<{ items: ConversationInfo[] }>("GET", "/api/conversations");
    expect(items).toMatchObject([{ name: expect.stringMatching(/^oa-/), messages: 1 }]);
  },
  INSTALL_MS,
);

test(
  "Open WebUI lists the models, keeps each chat in a conversation of its own, and asks for titles without a trace",
  async () => {
    const bin = await ensureFromPypi("open-webui", INSTALL_MS);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const home = temporaryFolder();
    const child = spawn(join(bin, "open-webui"), ["serve", "--host", "127.0.0.1", "--port", String(port)], {
      env: {
        ...{ PATH: process.env.PATH, HOME: home, DATA_DIR: home, WEBUI_SECRET_KEY: "for-tests", CORS_ALLOW_ORIGIN: url },
        ...{ OPENAI_API_BASE_URL: `${daemon.url}/v1`, OPENAI_API_KEY: token, ENABLE_OLLAMA_API: "False" },
        // Without accounts, offline, and with the chat's id in each request.
        ...{ WEBUI_AUTH: "False", OFFLINE_MODE: "true", HF_HUB_OFFLINE: "1", RAG_EMBEDDING_ENGINE: "openai" },
        ENABLE_FORWARD_USER_INFO_HEADERS: "true",
      },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let printed = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        printed = (printed + chunk).slice(-5_000);
      });
    const ended = new Promise((done) => child.once("close", done));
    onTestFinished(async () => {
      killGroup(child.pid);
      await ended;
    });
    const isUp = async () => {
      if (child.exitCode !== null) throw new Error(`Open WebUI ended:\n${printed}`);
      return (await fetch(`${url}/health`).catch(() => undefined))?.ok;
    };
    await until("Open WebUI to serve", isUp, 900_000);
    const post = async <T>(path: string, body: unknown, bearer?: string): Promise<T> => {
      const headers = { "content-type": "application/json", ...(bearer && { authorization: `Bearer ${bearer}` }) };
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return JSON.parse(text) as T;
    };
    const { token: user } = await post<{ token: string }>("/api/v1/auths/signin", { email: "", password: "" });
    const listed = await fetch(`${url}/api/models`, { headers: { authorization: `Bearer ${user}` } });
    const { data } = (await listed.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(["io", "io-light"]));

    interface Chat {
      choices: { message: { content: string } }[];
    }
    const history: { role: string; content: string }[] = [];
    const chat = async (content: string) => {
      history.push({ role: "user", content });
      const body = { model: "io", messages: history, stream: false };
      const answer = await post<Chat>("/api/chat/completions", body, user);
      history.push({ role: "assistant", content: answer.choices[0]!.message.content });
      return answer.choices[0]!.message.content;
    };
    expect(await chat("good morning")).toBe("You said: good morning");
    expect(await chat("and a good evening")).toBe("You said: and a good evening");
    const before = (await daemon.json<{ items: ConversationInfo[] }>("GET", "/api/conversations")).items;
    expect(before.filter(({ messages }) => messages === 2)).toHaveLength(1);
    // As its own page does: identifies the chat by id and receives the answer piece by piece elsewhere.
    const { id } = await post<{ id: string }>("/api/v1/chats/new", { chat: { title: "tea", models: ["io"] } }, user);
    const messages = [{ role: "user", content: "by the chat's id" }];
    await post("/api/chat/completions", { model: "io", messages, stream: true, chat_id: id, id: "m1" }, user);
    const named = await until("the chat's conversation", async () => {
      const { items } = await daemon.json<{ items: ConversationInfo[] }>("GET", "/api/conversations");
      return items.find(({ name, running }) => name === `webui-${id}` && running === 0);
    });
    expect(named.messages).toBe(1);
    const title = await post<Chat>("/api/v1/tasks/title/completions", { model: "io", messages: history, chat_id: "x" }, user);
    expect(title.choices[0]!.message.content).toContain("Of tea");
    expect((await daemon.json<{ items: ConversationInfo[] }>("GET", "/api/conversations")).items).toHaveLength(before.length + 1);
  },
  INSTALL_MS,
);
