import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { cleanEnvironment, IO, providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

test("a person chats in a terminal, stops an answer with Ctrl-C, asks on, and leaves with Ctrl-D", {
  timeout: 90_000,
}, async () => {
  const model = await scriptedModel((request) => {
    const text = lastUserText(request);
    if (text.includes("[via background]")) return { say: "The painter is done." };
    if (text.includes("paint")) return { say: "It is painted." };
    if (text.includes("long")) return { stall: "Once upon a time" };
    return { say: [`You said: ${/\] (.*)$/.exec(text)?.[1]}`] };
  });
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const terminal = await openTerminal(home, [process.execPath, IO], cleanEnvironment(home));
  await until("the prompt", async () => /API at http.*›/s.test(await terminal.screen()));
  await terminal.type("good day");
  await terminal.press("Enter");
  await until("the answer", async () => (await terminal.screen()).includes("You said: good day"));
  expect(lastUserText(model.requests[0]!)).toContain("[via tui] good day");

  await terminal.type("a long story");
  await terminal.press("Enter");
  await until("its beginning", async () => (await terminal.screen()).includes("Once upon a time"));
  await terminal.press("C-c");
  await until("the stop", async () => (await terminal.screen()).includes("stopped"));
  await until("the cancellation", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
    return items[0]?.text === "a long story" && items[0].status === "cancelled";
  });
  await terminal.type("still there?");
  await terminal.press("Enter");
  await until("the next answer", async () => (await terminal.screen()).includes("You said: still there?"));
  await daemon.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: temporaryFolder() });
  await daemon.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  await daemon.json("POST", "/api/squads/painters/tasks", { task: "paint the door" });
  await until("the news from the background", async () => (await terminal.screen()).includes("The painter is done."));
  await terminal.type("/status");
  await terminal.press("Enter");
  await until("the status", async () => /Engine: provider, ready/.test(await terminal.screen()));
  await terminal.press("C-d");
  await until("the end of the chat", async () => !(await terminal.isOpen()));
  expect((await fetch(`${daemon.url}/api/health`)).status).toBe(200);
});

test("what a model says cannot move the cursor, clear the screen or write the clipboard of a terminal", {
  timeout: 60_000,
}, async () => {
  const tricks = "before\u001b[2J\u001b[H\u001b]52;c;ZXZpbA==\u0007\u009b1A\r\u202eafter";
  const model = await scriptedModel(() => ({ say: [tricks] }));
  const home = temporaryHome();
  await startDaemonProcess(home, providerEnvironment(model.url));
  const sent = await runIo(["send", "hello"], home);
  expect(sent.stdout).toBe("before�[2J�[H�]52;c;ZXZpbA==��1A�after\n");
  expect(JSON.parse((await runIo(["send", "hello", "--json"], home)).stdout)).toMatchObject({ reply: tricks });
  const terminal = await openTerminal(home, [process.execPath, IO], cleanEnvironment(home));
  await until("the prompt", async () => /API at http.*›/s.test(await terminal.screen()));
  await terminal.type("good day");
  await terminal.press("Enter");
  await until("the answer", async () => (await terminal.screen()).includes("after"));
  expect(await terminal.screen()).toMatch(/API at http.*good day.*before�\[2J�\[H�\]52;c;ZXZpbA==��1A�after/s);
});

test("a chat that lost its daemon for longer than a restart takes hears what came back from the background meanwhile", {
  timeout: 90_000,
}, async () => {
  const model = await scriptedModel((request) => {
    const text = lastUserText(request);
    if (text.includes("[via background]")) return { say: "The painter is done." };
    return text.includes("paint") ? { stall: "I am pain" } : { say: "Good day to you." };
  });
  const home = temporaryHome();
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  await first.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: temporaryFolder() });
  await first.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  await first.json("POST", "/api/squads/painters/tasks", { task: "paint the door" });
  await until("the task to be under way", () => model.requests.length === 1);
  const terminal = await openTerminal(home, [process.execPath, IO], cleanEnvironment(home));
  await until("the prompt", async () => /API at http.*›/s.test(await terminal.screen()));
  await first.kill("SIGTERM");
  const gone = performance.now();
  await until("the loss to be told", async () => (await terminal.screen()).includes("waiting for it"));
  await until("longer than a restart is waited for", () => performance.now() - gone > 13_500, 20_000);

  model.play((request) =>
    lastUserText(request).includes("[via background]") ? { say: "The painter is done." } : { say: "It is painted." },
  );
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  await until("the return to be told", async () => (await terminal.screen()).includes("the daemon is back"));
  await until("the news from the background", async () => (await terminal.screen()).includes("The painter is done."));
  expect(second.url).not.toBe(first.url);
  model.play(() => ({ say: "Good day to you." }));
  await terminal.type("good day");
  await terminal.press("Enter");
  await until("an answer", async () => (await terminal.screen()).includes("Good day to you."));
});

test("a question appears in the middle of an answer, whole, and is answered there", { timeout: 60_000 }, async () => {
  const model = await scriptedModel((request) =>
    request.messages.at(-1)?.role === "tool"
      ? { say: `It said: ${/printed \w+/.exec(JSON.stringify(request.messages.at(-1)))?.[0]}` }
      : { call: [{ tool: "shell", args: { command: "echo printed words" } }], say: "I would like to print." },
  );
  const home = temporaryHome({ approvals: "effects" });
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const terminal = await openTerminal(home, [process.execPath, IO], cleanEnvironment(home));
  await until("the prompt", async () => /API at http.*›/s.test(await terminal.screen()));
  await terminal.type("print it");
  await terminal.press("Enter");
  const id = await until("the question", async () => /Answer: \/allow (\w{5})/.exec(await terminal.screen())?.[1]);
  expect(await terminal.screen()).toContain("    echo printed words");
  await terminal.type("/approvals");
  await terminal.press("Enter");
  await until("the list", async () => (await terminal.screen()).split(`/allow ${id}`).length > 2);
  await terminal.type(`/allow ${id}`);
  await terminal.press("Enter");
  await until("the answer", async () => (await terminal.screen()).includes("It said: printed words"));
  await terminal.type("/quit");
  await terminal.press("Enter");
  await until("the end of the chat", async () => !(await terminal.isOpen()));
  expect((await daemon.json<{ items: { state: string }[] }>("GET", "/api/approvals")).items).toMatchObject([
    { state: "allowed" },
  ]);
});
