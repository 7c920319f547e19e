import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../src/engine/rehearsal/wire.ts";
import { BOT_TOKEN, type BotApi, startBotApi } from "../test/support/telegram/bot-api.ts";
import { createPerson } from "../test/support/telegram/person.ts";
import { type BenchDaemon, build, describe, judge, median, memoryMb, startBenchDaemon, temporaryFolder } from "./support.ts";

const OWNER = 4_242;
const BURST = 50;
const TOPICS = 5;
const WORDS = 8;
const GAP_MS = 200;
/** Limits for what Telegram adds to the same turn over HTTP. */
const MAX_IN_MS = 50;
const MAX_OUT_MS = 50;
const MAX_MB = 15;
const SETTLED = 200;

/** When the model was asked, by the name in the message. */
type Asked = Map<string, number>;
const nameIn = (request: ChatRequest) =>
  /bench-\w+-\d+/.exec(textOf(request.messages.findLast(({ role }) => role === "user")))?.[0] ?? "";

/** Compares a turn through Telegram with one over HTTP, and measures a burst from several topics and the channel's memory. */
export async function run(args: string[]): Promise<void> {
  const turns = Number(args[0] ?? 30);
  build();
  const folder = temporaryFolder();
  const closers: (() => void | Promise<void>)[] = [];
  const api = await startBotApi((work) => void closers.push(work));
  api.chats.state.topicsEnabled = true;
  const asked: Asked = new Map();
  const model = await startModelServer((request) => {
    const name = nameIn(request);
    if (!asked.has(name)) asked.set(name, performance.now());
    const isSlow = name.includes("slow");
    return isSlow
      ? { say: Array.from({ length: WORDS }, (_, index) => `${name} ${index} `), gapMs: GAP_MS }
      : { say: `Noted ${name}.` };
  });
  const off = await startBenchDaemon(model.url, join(folder.path, "off"), {});
  const on = await startBenchDaemon(model.url, join(folder.path, "on"), {
    telegramEnabled: true,
    telegramBotToken: BOT_TOKEN,
    telegramApiRoot: api.url,
    authorizedUserId: OWNER,
  });
  try {
    await connected(on);
    await single({ api, off, asked, turns });
    await burst({ api, off });
    await memory(api, off, on);
  } finally {
    await on.stop();
    await off.stop();
    await model.close();
    for (const close of closers) await close();
    folder.remove();
  }
}

async function single({ api, off, asked, turns }: { api: BotApi; off: BenchDaemon; asked: Asked; turns: number }): Promise<void> {
  const owner = createPerson(api, OWNER);
  const times = { chatIn: [] as number[], chatOut: [] as number[], httpIn: [] as number[], httpOut: [] as number[] };
  const edits: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const isWarm = turn >= 3;
    const chat = `bench-chat-${turn}`;
    const began = performance.now();
    owner.send(chat);
    await shown(api, `Noted ${chat}.`);
    const arrived = performance.now();
    const http = `bench-http-${turn}`;
    const httpBegan = performance.now();
    await off.ask(http, "main");
    const httpArrived = performance.now();
    if (!isWarm) continue;
    times.chatIn.push(asked.get(chat)! - began);
    times.chatOut.push(arrived - asked.get(chat)!);
    times.httpIn.push(asked.get(http)! - httpBegan);
    times.httpOut.push(httpArrived - asked.get(http)!);
  }
  for (let turn = 0; turn < 5; turn += 1) {
    const name = `bench-slow-${turn}`;
    owner.send(name);
    await shown(api, Array.from({ length: WORDS }, (_, index) => `${name} ${index}`).join(" "));
    edits.push(performance.now() - asked.get(name)! - WORDS * GAP_MS);
  }
  console.log(describe("update to model", times.chatIn));
  console.log(describe("request to model, HTTP", times.httpIn));
  console.log(describe("model to chat", times.chatOut));
  console.log(describe("model to answer, HTTP", times.httpOut));
  console.log(describe("last word to final edit", edits));
  const besideHttp = (chat: number[], http: number[]) => `${(median(chat) / median(http)).toFixed(2)} times the same over HTTP`;
  console.log(`update to model            ${besideHttp(times.chatIn, times.httpIn)}, turn by turn in one run`);
  console.log(`model to chat              ${besideHttp(times.chatOut, times.httpOut)}, turn by turn in one run`);
  judge("update to model, beyond HTTP", median(times.chatIn) - median(times.httpIn), MAX_IN_MS, " ms");
  judge("model to chat, beyond HTTP", median(times.chatOut) - median(times.httpOut), MAX_OUT_MS, " ms");
}

async function burst({ api, off }: { api: BotApi; off: BenchDaemon }): Promise<void> {
  const owner = createPerson(api, OWNER);
  const threads = Array.from(
    { length: TOPICS },
    (_, index) => api.chats.createTopic({ chat_id: OWNER, name: `t${index}` }).message_thread_id,
  );
  const names = Array.from({ length: BURST }, (_, index) => `bench-burst-${index}`);
  const began = performance.now();
  for (const [index, name] of names.entries()) owner.send(name, { thread: threads[index % TOPICS]! });
  for (const name of names) await shown(api, `Noted ${name}.`);
  const chatMs = performance.now() - began;
  const httpBegan = performance.now();
  await Promise.all(names.map((name, index) => off.ask(`${name}00`, `c${index % TOPICS}`)));
  const httpMs = performance.now() - httpBegan;
  const ratio = (chatMs / httpMs).toFixed(2);
  console.log(
    `burst of ${BURST} from ${TOPICS} topics    ${chatMs.toFixed(0)} ms; over HTTP ${httpMs.toFixed(0)} ms; ${ratio} times that`,
  );
}

/** Waits until both have answered enough to have loaded everything and collected garbage: before that, chance decides. */
async function memory(api: BotApi, off: BenchDaemon, on: BenchDaemon): Promise<void> {
  const owner = createPerson(api, OWNER);
  for (let turn = 0; turn < SETTLED; turn += 1) {
    owner.send(`bench-mem-${turn}`);
    await shown(api, `Noted bench-mem-${turn}.`);
    await off.ask(`bench-off-${turn}`, "main");
  }
  const lowest = async (daemon: BenchDaemon) => {
    const seen: number[] = [];
    for (let look = 0; look < 10; look += 1) {
      seen.push(memoryMb(daemon.pid));
      await sleep(200);
    }
    return Math.min(...seen);
  };
  const [without, with_] = [await lowest(off), await lowest(on)];
  console.log(`memory                     ${without.toFixed(1)} MB without the channel, ${with_.toFixed(1)} MB with it`);
  judge("memory added by the channel", with_ - without, MAX_MB, " MB");
}

async function connected(daemon: BenchDaemon): Promise<void> {
  for (;;) {
    const { body } = await daemon.get("/api/telegram");
    if ((body as { state: string }).state === "connected") return;
    await sleep(20);
  }
}

async function shown(api: BotApi, text: string): Promise<void> {
  for (const end = performance.now() + 60_000; !api.shown(OWNER).some((each) => each.text === text); ) {
    if (performance.now() > end) throw new Error(`never shown: ${text}`);
    await sleep(1);
  }
}
