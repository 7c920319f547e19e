import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openChat } from "../support/chat.ts";
import { cleanEnvironment, IO, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { project } from "../support/squads.ts";
import { withDatabase } from "../support/stored-home.ts";
import { forbiddenIn, openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

test("io in a project opens its conversation and says so; what is begun there belongs to the project", {
  timeout: 90_000,
}, async () => {
  const chat = await openChat((said) => ({ say: `You said: ${said}` }));
  const folder = project({ "src/a.txt": "" });
  const terminal = await chat.open({ name: "p", cwd: join(folder, "src") });
  await terminal.sees(`in ${folder}`);
  await terminal.enter("hello");
  await terminal.sees("You said: hello");
  await terminal.enter("/new branch-work");
  await terminal.sees("conversation branch-work");
  await until("the new conversation", async () => {
    const made = await chat.daemon.json<{ folder?: string }>("GET", "/api/conversations/branch-work");
    return made.folder === folder;
  });
  await chat.terminal.enter("/new outside");
  await chat.terminal.sees("conversation outside");
  expect(await chat.daemon.json("GET", "/api/conversations/outside")).toMatchObject({ error: { code: "not_found" } });
});

test("a line typed before the daemon is there goes to the project's conversation", { timeout: 90_000 }, async () => {
  const model = await scriptedModel(() => ({ say: "Good day." }));
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const folder = project();
  writeFileSync(join(home, "drafts.json"), JSON.stringify({ main: "a draft for main" }));
  const terminal = await openTerminal(home, [process.execPath, IO], cleanEnvironment(home), { cwd: folder });
  await terminal.sees("›");
  await terminal.type("typed early");
  await terminal.sees("connected", 30_000);
  await terminal.press("Enter");
  await terminal.sees("Good day.");
  const { items } = await daemon.json<{ items: { folder: string; title: string }[] }>("GET", "/api/conversations");
  expect(items).toEqual([expect.objectContaining({ folder, title: "typed early" })]);
  expect(await terminal.screen()).not.toContain("a draft for main");
});

test("io --resume finds one of ten thousand conversations as fast as one types, and opens it", { timeout: 120_000 }, async () => {
  const model = await scriptedModel(() => ({ say: "Good day." }));
  const home = temporaryHome();
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  await first.kill("SIGTERM");
  withDatabase(home, (db) =>
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO messages (id, conversation, source, text, status, reply, created_at, finished_at)
      SELECT 'm' || i, 'talk-' || i, '{"channel":"api"}', 'About boat number ' || i, 'done', 'Aye.',
        printf('2026-01-01T00:00:00.%05dZ', i), '2026-01-01T00:00:01.000Z' FROM n;
      INSERT INTO messages (id, conversation, source, text, status, reply, created_at, finished_at)
      SELECT 'l' || id, 'long', source, text, status, reply, '2025-01-01T00:00:00.000Z', finished_at FROM messages LIMIT 3000`),
  );
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const terminal = await openTerminal(home, [process.execPath, IO, "--resume"], cleanEnvironment(home), { rows: 24 });
  await terminal.sees(/› About boat number 10000 +talk-10000/, 30_000);
  // More than one page: further rows are loaded when needed.
  await until("a row of the second page", async () => {
    await terminal.press(...Array<string>(10).fill("Down"));
    return /› About boat number 99[0-3]\d /.test(await terminal.screen());
  });
  await terminal.type("boat number 4242");
  await terminal.sees(/› boat number 4242\n› About boat number 4242 +talk-4242/);
  await terminal.type(" nothing like it");
  await terminal.sees("No conversation has these words.");
  await terminal.press("Enter");
  for (let presses = 0; presses < 4; presses += 1) await terminal.press("C-w");
  await terminal.sees("› About boat number 10000");
  await terminal.type("4243");
  await terminal.sees(/› About boat number 4243/);
  await terminal.press("Enter");
  await terminal.sees("connected");
  await terminal.sees("talk-4243");
  await terminal.sees("Aye.");
  expect(await daemon.json("GET", "/api/conversations/talk-4243")).toMatchObject({ unread: 0 });
  expect(forbiddenIn(terminal.bytes())).toEqual([]);
  // The daemon's event loop is watched: a long conversation must be deleted in short steps.
  expect(await daemon.json("DELETE", "/api/conversations/long")).toEqual({ name: "long", messages: 3_000, cancelled: 0 });
});

test("whoever leaves the choice opens nothing", { timeout: 60_000 }, async () => {
  const chat = await openChat(() => ({ say: "Good day." }));
  const command = ["sh", "-c", '"$@"; echo "left with $?"; sleep 60', "sh", process.execPath, IO, "--resume"];
  const terminal = await openTerminal(chat.home, command, cleanEnvironment(chat.home), { name: "r" });
  await terminal.sees("Escape leaves", 30_000);
  await terminal.press("Escape");
  await terminal.sees("left with 0");
  expect(await terminal.screen()).not.toContain("Escape leaves");
});
