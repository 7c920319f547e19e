import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { count, openChat, saidIn, type TestChat } from "../support/chat.ts";
import { temporaryFolder } from "../support/home.ts";
import { forbiddenIn } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const latest = async ({ daemon }: TestChat): Promise<Message[]> =>
  (await daemon.json<{ items: Message[] }>("GET", "/api/messages")).items;

test("Escape cancels the turn and nothing else; Ctrl-C clears the line, and twice on an empty one leaves", {
  timeout: 90_000,
}, async () => {
  const chat = await openChat((said) => (said.includes("long") ? { stall: "Once upon a time" } : { say: `You said: ${said}` }));
  const { terminal } = chat;
  await terminal.enter("a long story");
  await terminal.sees("Once upon a time");
  await terminal.type("half a line");
  await terminal.press("Escape");
  await terminal.sees("(cancelled)");
  await until("the cancellation", async () => (await latest(chat))[0]?.status === "cancelled");
  await terminal.sees("› half a line");
  await terminal.press("C-c");
  await terminal.enter("still there?");
  await terminal.sees("You said: still there?");
  expect(saidIn(chat.model.requests.at(-1)!)).toBe("still there?");
  await terminal.press("C-c");
  await terminal.sees("Ctrl-C again leaves");
  await terminal.press("C-c");
  await until("the end of the chat", async () => !(await terminal.isOpen()));
  expect((await fetch(`${chat.daemon.url}/api/health`)).status).toBe(200);
  await terminal.writes("?2004l");
  expect(forbiddenIn(terminal.bytes())).toEqual([]);
});

test("Enter steers the turn that runs, Alt+Enter queues behind it, and Alt+Up takes that back", { timeout: 90_000 }, async () => {
  const chat = await openChat((said) =>
    said.includes("story")
      ? { say: Array.from({ length: 60 }, (_, at) => `word${at} `), gapMs: 50 }
      : { say: `Answer to: ${said}` },
  );
  const { terminal } = chat;
  await terminal.enter("a story");
  await terminal.sees("word3");
  await terminal.type("queued for later");
  await terminal.press("M-Enter");
  await terminal.sees("queued  queued for later");
  await terminal.sees("queue 1");
  await terminal.type("one too many");
  await terminal.press("M-Enter");
  await terminal.sees("queued  one too many");
  await terminal.press("M-Up");
  await terminal.sees("› one too many");
  await terminal.press("C-c");
  await terminal.enter("make it short");
  await terminal.sees("↳ make it short", 30_000);
  await terminal.sees("Answer to: queued for later", 60_000);
  const messages = await until("both to be done", async () => {
    const done = (await latest(chat)).filter(({ status }) => status === "done");
    return done.length >= 2 ? done : undefined;
  });
  expect(messages.map(({ text }) => text)).toEqual(["queued for later", "a story"]);
  expect(messages[1]!.steered.map(({ text }) => text)).toEqual(["make it short"]);
  const all = await terminal.scrollback();
  expect(count(all, "↳ make it short")).toBe(1);
  expect(count(all, "› queued for later")).toBe(1);
});

test("a paste of forty lines is one message, and what was typed before is there after a restart", {
  timeout: 90_000,
}, async () => {
  const chat = await openChat((said) => ({ say: `That was ${said.split("\n").length} lines.` }));
  const { terminal, home, model } = chat;
  const lines = Array.from({ length: 40 }, (_, index) => `pasted line ${index + 1}\tend`).join("\n");
  await terminal.paste(lines);
  await terminal.sees("› [pasted·40·lines·#1]");
  await terminal.press("Enter");
  await terminal.sees("That was 40 lines.");
  expect(saidIn(model.requests[0]!)).toBe(lines);
  await terminal.enter("something short");
  await terminal.sees("That was 1 lines.");
  await terminal.type("a draft that is not sent");
  await terminal.press("Escape");
  await terminal.sees("a draft that is not sent");
  expect(statSync(join(home, "history")).mode & 0o777).toBe(0o600);
  // The terminal is closed while the chat is open, as when a connection is lost.
  await terminal.hangUp();
  const kept = join(home, "drafts.json");
  await until("the draft to be kept", () => existsSync(kept) && readFileSync(kept, "utf8").includes("a draft that is not sent"));

  const again = await chat.open({ name: "again" });
  await again.sees("That was 1 lines.");
  await again.sees("› a draft that is not sent");
  await again.press("C-c");
  // Up first brings back what was cleared.
  await again.press("Up");
  await again.sees("› a draft that is not sent");
  await again.press("Up");
  await again.sees(/› something short\n/);
  await again.press("Up");
  await again.sees("pasted line 40");
  await again.press("Down");
  await again.press("Enter");
  await until("the message", async () => (await latest(chat)).filter(({ text }) => text === "something short").length === 2);
});

test("Tab completes commands, squads, agents and files", { timeout: 60_000 }, async () => {
  const chat = await openChat(() => ({ say: "ok" }));
  const { terminal, daemon } = chat;
  const project = temporaryFolder();
  writeFileSync(join(project, "notable-file.txt"), "");
  await daemon.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: project });
  await daemon.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  await terminal.type("/sta");
  await terminal.press("Tab");
  await terminal.sees("› /status");
  await terminal.press("C-u");
  await terminal.type("/s");
  await terminal.press("Tab");
  await terminal.sees(/\/skills +the skills .*\n.*\/squads +the squads[\s\S]*\/status [\s\S]*\/stop /);
  await terminal.press("C-u");
  await terminal.type("/agents pa");
  await terminal.press("Tab");
  await terminal.sees("› /agents painters");
  await terminal.press("Enter");
  await terminal.sees(/Painter +Paints\./);
  await terminal.type("ask @pain");
  await terminal.press("Tab");
  await terminal.sees(/@painters\s+@painters\//);
  await terminal.press("C-u");
  await terminal.type(`look at ${project}/nota`);
  await terminal.press("Tab");
  await terminal.sees("notable-file.txt");
});

test("a command of one's own runs in one's own shell, and an editor of one's own writes the line", {
  timeout: 60_000,
}, async () => {
  const folder = temporaryFolder();
  const editor = join(folder, "editor.sh");
  writeFileSync(editor, '#!/bin/sh\nprintf "written outside\\nin two lines\\n" > "$1"\n', { mode: 0o755 });
  const { terminal, model } = await openChat(() => ({ say: "Read." }), { env: { EDITOR: editor } });
  await terminal.enter("!echo printed by $((40 + 2)); exit 3");
  await terminal.sees("printed by 42");
  await terminal.sees("exit 3");
  await terminal.type("draft");
  await terminal.press("C-g");
  await terminal.sees("in two lines");
  await terminal.press("Enter");
  await terminal.sees("Read.");
  expect(saidIn(model.requests[0]!)).toBe("written outside\nin two lines");
  expect(model.requests).toHaveLength(1);
});

test("two terminals in one conversation see the same, also one that comes in the middle of an answer", {
  timeout: 90_000,
}, async () => {
  const chat = await openChat((said) =>
    said.includes("story")
      ? { say: Array.from({ length: 40 }, (_, at) => `part${at}\n`), gapMs: 100 }
      : { say: `Answer to: ${said}` },
  );
  const { terminal } = chat;
  await terminal.enter("a story");
  await terminal.sees("part5");
  const second = await chat.open({ name: "second" });
  await terminal.sees("part39", 30_000);
  await second.sees("part39", 30_000);
  await until("the end of the turn", async () => !(await second.screen()).includes("working"));
  await second.enter("and from here");
  await terminal.sees("Answer to: and from here");
  await second.sees("Answer to: and from here");
  for (const each of [terminal, second]) {
    const all = await each.scrollback();
    expect(all).toMatch(/› a story\n\npart0\npart1\n/);
    for (const part of ["part0\n", "part3\n", "part38\n", "› and from here", "Answer to: and from here"])
      expect([part, count(all, part)]).toEqual([part, 1]);
  }
});

test("a result from the background comes without disturbing the line that is being typed", { timeout: 60_000 }, async () => {
  const chat = await openChat((said, request) => {
    if (JSON.stringify(request.messages.at(-1)).includes("[via background]")) return { say: "The painter is **done**." };
    return said.includes("paint") ? { say: "It is painted." } : { say: "ok" };
  });
  const { terminal, daemon } = chat;
  await daemon.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: temporaryFolder() });
  await daemon.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  await terminal.type("half a sen");
  await daemon.json("POST", "/api/squads/painters/tasks", { task: "paint the door" });
  await terminal.sees("The painter is done.", 30_000);
  await terminal.type("tence");
  await terminal.sees("› half a sentence");
  await until("the caret behind it", async () => (await terminal.cursor()).x === "› half a sentence".length);
});

test("what a model says cannot move the cursor, clear the screen or write the clipboard of a terminal", async () => {
  const tricks = "before\u001b[2J\u001b[H\u001b]52;c;ZXZpbA==\u0007\u009b1A\r\u202eafter";
  const { terminal } = await openChat(() => ({ say: [tricks] }));
  await terminal.enter("good day");
  await terminal.sees(/› good day\n\nbefore�\[2J�\[H�\]52;c;ZXZpbA==��1A�after/);
  expect(terminal.bytes()).not.toContain("\u001b[2J");
  expect(terminal.bytes()).not.toContain("\u001b]52");
});
