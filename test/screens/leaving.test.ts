import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { count, openChat, type TestChat } from "../support/chat.ts";
import { cleanEnvironment, IO } from "../support/daemon.ts";
import { sleeping } from "../support/processes.ts";
import { openTerminal, uncoloured } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const messages = async ({ daemon }: TestChat): Promise<Message[]> =>
  (await daemon.json<{ items: Message[] }>("GET", "/api/messages")).items;

test("whoever leaves right after Enter has said it all the same, by Ctrl-D and by /quit", {
  timeout: 90_000,
}, async () => {
  const chat = await openChat(() => ({ say: "Heard." }));
  const { terminal } = chat;
  await terminal.type("said and gone");
  await terminal.press("Enter", "C-d");
  await until("the end of the chat", async () => !(await terminal.isOpen()));
  const second = await chat.open({ name: "second" });
  await second.send("also this\r/quit\r");
  await until("the end of the chat", async () => !(await second.isOpen()));
  const all = await until("all to be answered", async () => {
    const done = (await messages(chat)).filter(({ status }) => status === "done");
    return done.length === 2 ? done : undefined;
  });
  expect(all.map(({ text }) => text)).toEqual(["also this", "said and gone"]);
});

test("Ctrl-Z gives the terminal back to the shell, and fg goes on with the line, the caret and the answer", {
  timeout: 90_000,
}, async () => {
  const chat = await openChat((said) =>
    said.includes("story") ? { say: Array.from({ length: 60 }, (_, at) => `part${at}\n`), gapMs: 50 } : { say: "ok" },
  );
  const env = cleanEnvironment(chat.home, { PS1: "ready> ", HISTFILE: "" });
  const terminal = await openTerminal(chat.home, ["bash", "--norc", "--noprofile", "-i"], env, { name: "shell" });
  await terminal.sees("ready>");
  await terminal.enter(`'${process.execPath}' '${IO}'`);
  await terminal.sees("connected", 30_000);
  await terminal.enter("a story");
  await terminal.sees("part3\n");
  await terminal.type("half a line");
  await terminal.press("Left", "Left");
  await terminal.press("C-z");
  await terminal.sees(/Stopped[\s\S]*ready>/);
  expect(await terminal.screen()).not.toMatch(/half a line|connected/);
  await terminal.enter("echo sum $((40 + 2)); stty -a | grep -o ' icanon'");
  await terminal.sees(/sum 42\n icanon/);
  await terminal.enter("fg");
  await terminal.sees("› half a line", 30_000);
  await terminal.sees("part59\n", 30_000);
  await until("the end of the turn", async () => !(await terminal.screen()).includes("working"));
  await until("the caret where it was", async () => (await terminal.cursor()).x === "› half a li".length);
  await terminal.type("X");
  await terminal.sees("› half a liXne");
  const all = await terminal.scrollback();
  for (const part of ["part0\n", "part30\n", "part58\n"]) expect([part, count(all, part)]).toEqual([part, 1]);
});

test("Ctrl-C in a command of one's own ends that command and not the chat", { timeout: 60_000 }, async () => {
  const { terminal } = await openChat(() => ({ say: "Still here." }));
  const mark = `600${Math.floor(Math.random() * 1e6)}`;
  await terminal.enter(`!echo begins; sleep ${mark}; echo never`);
  await terminal.sees(/\nbegins\n/);
  // A shell that is interrupted while it starts a program may still start it.
  await until("the command to run", async () => (await sleeping(mark)) === 1);
  await terminal.press("C-c");
  await terminal.sees(/· (?:ended by SIGINT|exit 130)/);
  expect(await terminal.screen()).not.toMatch(/\nnever\n/);
  await terminal.enter("hello");
  await terminal.sees("Still here.");
});

test("a terminal that lost the focus is called by bell, title and notification, and one that has it never", {
  timeout: 60_000,
}, async () => {
  const { terminal } = await openChat((said) => ({ say: `Answer to: ${said}` }));
  const title = await terminal.title();
  // This terminal has no client attached, so it starts without the focus.
  await terminal.send("\u001b[I");
  await terminal.enter("looked at");
  await terminal.sees("Answer to: looked at");
  await terminal.sees(/[1-9]\d* tokens/);
  expect([terminal.bytes().includes("\u001b]9;"), terminal.bytes().includes("\u0007")]).toEqual([false, false]);
  await terminal.send("\u001b[O");
  await terminal.enter("looked away");
  await terminal.sees("Answer to: looked away");
  await until("the title", async () => (await terminal.title()) === "IO has answered");
  await terminal.writes("\u001b]9;IO has answered\u0007\u0007");
  await terminal.send("\u001b[I");
  await until("the title that was there before", async () => (await terminal.title()) === title);
});

test("a link can be followed where the terminal knows links, and is written out where it does not", {
  timeout: 60_000,
}, async () => {
  const chat = await openChat(() => ({ say: "See [the page](https://example.org/a) there." }), {
    env: { TERM_PROGRAM: "WezTerm" },
  });
  await chat.terminal.enter("where?");
  await chat.terminal.sees("See the page there.");
  await chat.terminal.writes("\u001b]8;;https://example.org/a\u001b\\");
  expect(uncoloured(chat.terminal.bytes())).toContain("␛]8;;https://example.org/a␛\\the page␛]8;;␛\\");
  const plain = await openTerminal(chat.home, [process.execPath, IO], cleanEnvironment(chat.home), { name: "plain" });
  await plain.sees("the page (https://example.org/a) there.", 30_000);
  expect(plain.bytes()).not.toContain("\u001b]8;");
});
