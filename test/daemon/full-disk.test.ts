import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Status } from "../../src/protocol/api.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess, startIo, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { withDatabase } from "../support/stored-home.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let disk: SmallDisk;
let daemon: TestDaemon;
let asked = 0;
/** Lets the model answer. */
let answer = () => {};
let answered = Promise.resolve();
const holdModel = () => {
  answered = new Promise((go) => {
    answer = go;
  });
};

beforeAll(async () => {
  const model = await scriptedModel(
    async (request) => {
      asked += 1;
      await answered;
      const text = lastUserText(request);
      if (text.includes("note it") && !isAfterTool(request))
        return {
          call: [{ tool: "wiki_write", args: { path: "pages/noted.md", content: `# Noted\n\n${"words ".repeat(2_000)}` } }],
        };
      return { say: `heard: ${text.slice(-20)} ${"and so on ".repeat(50)}` };
    },
    {},
    atTheEnd,
  );
  disk = await smallDisk(96, atTheEnd);
  const home = join(disk.folder, "home");
  mkdirSync(home, { mode: 0o700 });
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  await daemon.ask({ text: "before" });
}, 120_000);

const send = (text: string, conversation: string) =>
  daemon.json<Message>("POST", "/api/messages", { text, conversation }).then(({ id }) => id);
const request = async (method: string, path: string, body: unknown) => {
  const headers = { "content-type": "application/json" };
  const response = await daemon.fetch(path, { method, headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
};
const messages = (ids: readonly string[]) => Promise.all(ids.map((id) => daemon.json<Message>("GET", `/api/messages/${id}`)));
const DISK_FULL = { status: 503, body: { error: { code: "disk_full", message: expect.stringMatching(/the disk is full/i) } } };

afterEach(() => disk.free());

/** Waits until every acknowledged message has ended well, and checks that the records about it agree. */
async function allEndWell(ids: readonly string[]): Promise<void> {
  const all = await until(
    "every message to end",
    async () => {
      const now = await messages(ids);
      return now.every(({ finishedAt }) => finishedAt !== null) ? now : undefined;
    },
    60_000,
  );
  expect(all!.filter(({ status, reply }) => status !== "done" || !reply?.startsWith("heard: "))).toEqual([]);
  const told = withDatabase(daemon.home, (db) =>
    db
      .prepare(
        "SELECT json_extract(data, '$.id') AS id, json_extract(data, '$.reply') AS reply FROM events WHERE type = 'message.finished'",
      )
      .all(),
  ) as { id: string; reply: string }[];
  for (const { id, reply } of all!) expect(told.filter((event) => event.id === id)).toEqual([{ id, reply }]);
}

test("what is asked of a full disk is refused with a sentence, and leaves every file as it was", {
  timeout: 60_000,
}, async () => {
  expect((await request("PUT", "/api/wiki/pages/kept.md", { content: "# Kept\n\nold words" })).status).toBeLessThan(300);
  expect((await request("PATCH", "/api/config", { turnCapMs: 900_000 })).status).toBe(200);
  const config = readFileSync(join(daemon.home, "config.json"), "utf8");
  await disk.fill();
  expect(await request("POST", "/api/messages", { text: "x".repeat(200_000) })).toEqual(DISK_FULL);
  expect(await request("PUT", "/api/wiki/pages/kept.md", { content: `# Kept\n\n${"new words ".repeat(20_000)}` })).toEqual(
    DISK_FULL,
  );
  const changed = await request("PATCH", "/api/config", {
    telegramApiRoot: `http://127.0.0.1/${"x".repeat(1_500)}`,
    turnCapMs: 800_000,
  });
  if (changed.status !== 200) expect(changed).toEqual(DISK_FULL);
  else expect(JSON.parse(readFileSync(join(daemon.home, "config.json"), "utf8")).turnCapMs).toBe(800_000);
  expect(await daemon.json("GET", "/api/wiki/pages/kept.md")).toMatchObject({ content: "# Kept\n\nold words" });
  if (changed.status !== 200) expect(readFileSync(join(daemon.home, "config.json"), "utf8")).toBe(config);
  const left = readdirSync(daemon.home, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"));
  expect(left).toEqual([]);
  disk.free();
  expect(await daemon.ask({ text: "after" })).toMatchObject({ status: "done" });
});

test("messages and tasks that wait or run while the disk is full go on by themselves when there is room", {
  timeout: 240_000,
}, async () => {
  const folder = project();
  const [agent] = await squadWith(daemon, folder, "builders", ["Builder"]);
  holdModel();
  const before = asked;
  const ids: string[] = [];
  for (let at = 0; at < 12; at += 1) ids.push(await send(at % 3 === 0 ? "note it" : `message ${at}`, `full-${at % 4}`));
  const task = await delegate(daemon, "builders", { task: "build it", agent: agent! });
  await until("the model to be asked", () => asked >= before + 5, 60_000);
  await disk.fill();
  const refused = await request("POST", "/api/messages", { text: "x".repeat(200_000) });
  expect(refused).toEqual(DISK_FULL);
  answer();
  await until("the queues to be in trouble", () => /disk is full|disk_full/.test(daemon.output()), 60_000);
  expect(daemon.child.exitCode).toBeNull();
  disk.free();
  await allEndWell(ids);
  expect(await ended(daemon, task.id, 60_000)).toMatchObject({ status: "done" });
});

test("a backup that finds no room beside the data folder or where it is to go says which disk is full, and leaves nothing", {
  timeout: 240_000,
}, async () => {
  answer();
  const elsewhere = temporaryFolder(atTheEnd);
  const scratch = () => readdirSync(join(daemon.home, "scratch")).filter((name) => name.startsWith("backup-"));
  const backup = (file: string) => runIo(["backup", file], daemon.home);
  await disk.fill();
  const noRoom = await backup(join(elsewhere, "io.tar.gz"));
  expect(noRoom).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/the disk is full/i) });
  expect(noRoom.stderr).toContain(daemon.home);
  expect(noRoom.stderr).not.toMatch(/ at .*\.[jt]s:\d/);
  expect([scratch(), readdirSync(elsewhere)]).toEqual([[], []]);
  disk.free();
  const small = await smallDisk(1, atTheEnd);
  await small.fill();
  const target = join(small.folder, "io.tar.gz");
  const noPlace = await backup(target);
  expect(noPlace).toMatchObject({ code: 1, stderr: expect.stringContaining(`${target} cannot be written: the disk is full`) });
  expect([scratch(), readdirSync(small.folder)]).toEqual([[], ["ballast"]]);
  expect(await backup(join(elsewhere, "io.tar.gz"))).toMatchObject({ code: 0 });
  expect(readdirSync(elsewhere)).toEqual(["io.tar.gz"]);
});

/** Frees pages inside the database, so that it can still write on a full disk. */
const leaveRoomInDatabase = () =>
  withDatabase(daemon.home, (db) => {
    db.exec("PRAGMA busy_timeout = 10000; CREATE TABLE room (x); INSERT INTO room VALUES (zeroblob(12000000)); DROP TABLE room");
  });

test("a runtime that cannot write while the database can is not called silent or broken: the turn waits for room", {
  timeout: 240_000,
}, async () => {
  leaveRoomInDatabase();
  holdModel();
  const before = asked;
  const ids: string[] = [];
  for (let at = 0; at < 8; at += 1) ids.push(await send(`message ${at}`, `runtime-${at % 4}`));
  await until("the model to be asked", () => asked >= before + 4, 60_000);
  await disk.fill();
  const said = daemon.output().length;
  answer();
  await until("a turn to be cut off", () => daemon.output().slice(said).includes('"why":"disk_full"'), 60_000);
  expect((await messages(ids)).filter(({ status }) => status === "failed")).toEqual([]);
  disk.free();
  await allEndWell(ids);
  const lines = readFileSync(join(daemon.home, "logs", "io.log"), "utf8")
    .trim()
    .split("\n");
  for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
});

test("whoever waits for a full disk is told so, what to do, and when the work goes on", { timeout: 240_000 }, async () => {
  leaveRoomInDatabase();
  answer();
  const full = `The disk that holds ${daemon.home} is full: work waits until there is room. Free some space and it goes on by itself.`;
  const again = "There is room on the disk again: work goes on.";
  const follower = await daemon.follow({ conversation: "elsewhere" });
  const chat = startIo([], daemon.home);
  chat.input.write("here\n");
  await until("the chat to answer", () => chat.said.stdout.includes("heard: "), 60_000);
  await disk.fill();
  const status = () => daemon.json<Status>("GET", "/api/status").then((answered) => answered.disk);
  await until("the status to tell", async () => (await status())?.state === "full");
  expect(await status()).toMatchObject({ state: "full", detail: full });
  expect((await runIo(["status"], daemon.home)).stdout).toContain(full);
  await until("the news", () => follower.of("disk.changed").length === 1);
  expect(follower.of("disk.changed")[0]).toMatchObject({
    id: expect.stringMatching(/^\d+$/),
    body: { state: "full", detail: full },
  });

  const sent = startIo(["send", "does it wait?", "--conversation", "told"], daemon.home);
  await until("io send to say why it waits", () => sent.said.stderr.includes(`! ${full}\n`), 60_000);
  const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=told");
  expect(items.map(({ finishedAt }) => finishedAt)).toEqual([null]);
  await until("the chat to say so", () => chat.said.stderr.includes(`! ${full}\n`));
  disk.free();
  await until("the chat to say that it goes on", () => chat.said.stderr.includes(`! ${again}\n`));
  chat.input.end();
  expect(await chat.ended).toBe(0);
  expect(await sent.ended).toBe(0);
  expect(sent.said.stdout).toContain("heard: ");
  // The answer may come before the news.
  expect([`! ${full}\n`, `! ${full}\n! ${again}\n`]).toContain(sent.said.stderr);
  await until("the news that there is room", () => follower.of("disk.changed").length === 2);
  expect(await status()).toMatchObject({ state: "ok", detail: null });
  expect((await runIo(["status"], daemon.home)).stdout).not.toContain("disk that holds");
});
