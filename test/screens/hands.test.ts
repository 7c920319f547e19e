import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import { count, openChat, saidIn } from "../support/chat.ts";
import { png } from "../support/images.ts";
import { isAfterTool } from "../support/model.ts";
import { project } from "../support/squads.ts";
import { forbiddenIn, reprinted } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** Does what it is told: `run:` a command, `edit:` or `todo:` with arguments. Repeats anything else. */
function obeying(said: string, request: ChatRequest) {
  if (isAfterTool(request)) return { say: "That is done." };
  const [, what, rest = ""] = /^(run|edit|todo): ([\s\S]*)$/.exec(said) ?? [];
  if (what === "run") return { call: [{ tool: "shell", args: { command: rest } }] };
  if (what === "edit") return { call: [{ tool: "file_ops", args: JSON.parse(rest) as Record<string, unknown> }] };
  if (what === "todo") return { call: [{ tool: "todo", args: { items: JSON.parse(rest) } }] };
  return { say: `You said: ${said.slice(0, 200)} (${said.length})` };
}

const FILES = { "a.txt": "one\ntwo\nthree\n", "notes/n.txt": "the note says OCHRE\n" };

test("a command folds to one line with its exit code, an edit shows its difference, /diff and /undo tell and turn back", {
  timeout: 120_000,
}, async () => {
  const folder = project(FILES);
  const chat = await openChat(obeying, { rows: 50 });
  const terminal = await chat.open({ name: "p", cwd: folder, rows: 50 });
  await terminal.sees(`in ${folder}`);
  await terminal.enter("run: for i in 1 2 3; do echo row $i; done");
  await terminal.sees(/✓ \$ for i in 1 2 3; do echo row \$i; done {2}exit 0 {2}[\d.]+ s/);
  await terminal.sees("That is done.");
  expect(await terminal.screen()).not.toContain("    row 3");
  await terminal.press("C-o");
  await terminal.sees("    row 3");

  await terminal.enter(`edit: ${JSON.stringify({ operation: "edit", path: "a.txt", edits: [{ old: "two", new: "deux" }] })}`);
  await terminal.sees("    - two");
  await terminal.sees("    + deux");
  await terminal.writes("\u001b[32m    + deux");
  await until("the end of the edit", async () => count(await terminal.screen(), "That is done.") === 2);
  await terminal.enter("/diff");
  await terminal.sees("diff --git a/a.txt b/a.txt");
  await terminal.sees(/^\+deux$/m);
  await terminal.writes("\u001b[31m-two");
  await terminal.enter("/undo");
  await terminal.sees("Undone: m_");
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\ntwo\nthree\n");
  await terminal.enter("/undo");
  await terminal.sees("Done again: m_");
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\ndeux\nthree\n");
  expect(forbiddenIn(terminal.bytes())).toEqual([]);
  // Each difference was printed once, and finished lines were not written again.
  expect(count(await terminal.scrollback(), "- two")).toBe(1);
});

test("a command's hundred thousand lines are seen while they come and fold away, over resizes, and nothing finished is touched", {
  timeout: 180_000,
}, async () => {
  const folder = project(FILES);
  const chat = await openChat(obeying, { rows: 30 });
  const terminal = await chat.open({ name: "p", cwd: folder, rows: 30 });
  await terminal.sees(`in ${folder}`);
  const finished = Array.from({ length: 4 }, (_, index) => `You said: words ${index} (7)`);
  for (const [index, answer] of finished.entries()) {
    await terminal.enter(`words ${index}`);
    await terminal.sees(answer);
  }
  const wait = (file: string) => `while [ ! -e ${file} ]; do sleep 0.05; done`;
  const rows = (from: number, to: number) => `seq -f 'row %.0f of many' ${from} ${to}`;
  await terminal.enter(`run: ${rows(1, 50_000)}; ${wait("go")}; ${rows(50_001, 99_999)}; ${wait("end")}; echo row 100000`);
  await terminal.sees("row 50000 of many", 60_000);
  for (const [columns, height] of [
    [70, 30],
    [120, 18],
    [90, 40],
    [100, 30],
  ] as const)
    await terminal.resize(columns, height);
  await terminal.sees("row 50000 of many");
  writeFileSync(join(folder, "go"), "");
  await terminal.sees("row 99999 of many", 60_000);
  await terminal.resize(64, 24);
  await terminal.sees("row 99999 of many");
  await terminal.resize(100, 30);
  writeFileSync(join(folder, "end"), "");
  await terminal.sees(/exit 0 {2}[\d.]+ s/, 60_000);
  await terminal.sees("That is done.");
  const all = await terminal.scrollback();
  // The finished call is shown as one line, without its output.
  expect(count(all, "of many\n")).toBe(0);
  for (const line of [...finished, "That is done."]) expect([line, count(all, line)]).toEqual([line, 1]);
  await terminal.writes("That is done.");
  const bytes = terminal.bytes();
  expect(reprinted(bytes, finished)).toEqual([]);
  expect(forbiddenIn(bytes)).toEqual([]);
  // The screen shows the last lines at intervals, not every line.
  expect(bytes.length).toBeLessThan(1_000_000);
});

test("the first chat names mode, model and folder and what to try; steps are in sight until they are done; the gauge follows /clear", {
  timeout: 120_000,
}, async () => {
  const folder = project(FILES);
  const chat = await openChat(obeying, { config: { mode: "ask" } });
  await chat.terminal.sees(/model\s+scripted\.\s+Mode\s+ask:\s+IO\s+asks\s+you\s+before\s+everything/);
  await chat.terminal.sees(/Try: .* · .* · /);
  const terminal = await chat.open({ name: "p", cwd: folder });
  await terminal.sees(`in ${folder}`);
  await terminal.sees("scripted");
  const steps = (state: string) =>
    `todo: ${JSON.stringify([
      { text: "Look at it", state: "done" },
      { text: "Mend it", state },
    ])}`;
  await terminal.enter(steps("running"));
  await terminal.sees(/☑ Look at it\n +▸ Mend it/);
  await terminal.sees(/context \d+ %/);
  await terminal.enter(steps("done"));
  await until("the list to be gone", async () => !(await terminal.screen()).includes("☑ Look at it"));
  await terminal.enter("/context");
  await terminal.sees(/window +[\d,]+/);
  await terminal.enter("/compact");
  await terminal.sees("Compacted:");
  await until(
    "the gauge to be gone",
    async () => !/context \d+ %/.test((await terminal.screen()).split("\n").slice(-3).join("\n")),
  );
  await terminal.enter("/clear");
  await terminal.sees("Cleared:");
  await terminal.enter("/config mode");
  await terminal.sees("mode = ask");
  await terminal.enter("/export out.md");
  await terminal.sees(`Written: ${join(folder, "out.md")}`);
  expect(readFileSync(join(folder, "out.md"), "utf8")).toContain("Look at it");
  await terminal.enter("/export out.md");
  await terminal.sees("is there already");
});

test("a question is answered by one key once it was in sight, and stands on the screen once", { timeout: 120_000 }, async () => {
  const folder = project(FILES);
  const chat = await openChat(obeying, { config: { mode: "ask" } });
  const terminal = await chat.open({ name: "p", cwd: folder });
  await terminal.sees(`in ${folder}`);
  await terminal.enter("run: touch allowed.txt");
  await terminal.sees("y allows, n denies");
  await terminal.press("y");
  await terminal.sees("allowed by");
  await terminal.sees("That is done.");
  expect(existsSync(join(folder, "allowed.txt"))).toBe(true);
  expect(count(await terminal.scrollback(), "wants to use shell")).toBe(1);
  await terminal.enter("run: touch denied.txt");
  await terminal.sees("y allows, n denies");
  // A person who is typing something else is not answering.
  await terminal.type("my own words");
  await terminal.sees("› my own words");
  await terminal.press("C-c");
  await terminal.press("n");
  await terminal.sees("denied by");
  expect(existsSync(join(folder, "denied.txt"))).toBe(false);
});

test("Ctrl-C on an empty line cancels the turn; what Ctrl-C clears and what was sent before is found again", {
  timeout: 120_000,
}, async () => {
  const { terminal } = await openChat(obeying);
  await terminal.enter("run: sleep 300");
  await terminal.sees("$ sleep 300");
  await terminal.press("C-c");
  await terminal.sees("(cancelled)");
  await terminal.sees("connected");
  // The turn has ended: pressing Ctrl-C again first asks, instead of closing the chat.
  await until("no word of leaving", async () => !(await terminal.screen()).includes("Ctrl-C again leaves"));
  await terminal.press("C-c");
  await terminal.sees("Ctrl-C again leaves");
  await terminal.enter("a word about boats");
  await terminal.sees("You said: a word about boats");
  await terminal.enter("something else");
  await terminal.sees("You said: something else");
  await terminal.type("half a thought");
  await terminal.sees("› half a thought");
  await terminal.press("C-c");
  await until("an empty line", async () => !(await terminal.screen()).includes("half a thought"));
  await terminal.press("Up");
  await terminal.sees("› half a thought");
  await terminal.press("C-c");
  await terminal.press("C-r");
  await terminal.type("boats");
  await terminal.sees("search: boats");
  await terminal.sees("› a word about boats");
  await terminal.press("Enter");
  await until("the end of the search", async () => !(await terminal.screen()).includes("search: boats"));
  await terminal.press("Enter");
  await until("it to be sent again", async () => count(await terminal.screen(), "You said: a word about boats") === 2);
});

test("commands of one's own, attached files, large pastes and the menu", { timeout: 120_000 }, async () => {
  const folder = project({
    ...FILES,
    ".io/commands/greet.md": '---\ndescription: "Greets somebody"\n---\nSay hello to $ARGUMENTS, twice.\n',
  });
  const chat = await openChat(obeying, { rows: 50 });
  mkdirSync(join(chat.home, "commands"));
  writeFileSync(join(chat.home, "commands", "greet.md"), "the person's own, which the project's goes before");
  writeFileSync(join(chat.home, "commands", "wrap-up.md"), "Sum up the day.");
  const terminal = await chat.open({ name: "p", cwd: folder, rows: 50 });
  await terminal.sees(`in ${folder}`);
  await terminal.type("/c");
  await terminal.press("Tab");
  await terminal.sees(/\/clear +has the model begin anew/);
  await terminal.press("Tab");
  await terminal.sees("› /agents".replace("agents", "cancel"));
  await terminal.press("C-c");
  await terminal.type("/gr");
  await terminal.press("Tab");
  await terminal.sees("› /greet");
  await terminal.enter("Ada");
  await terminal.sees("You said: Say hello to Ada, twice.");
  await terminal.enter("/wrap-up now");
  await terminal.sees(/You said: Sum up the day\.\s+now/);
  await terminal.enter("/help");
  await terminal.sees("Greets somebody (.io/commands/greet.md)");
  await terminal.sees(/squad +a lasting team/);

  await terminal.enter("look at @notes/n.txt please");
  await terminal.sees("attached: notes/n.txt");
  await until("the text with it", () => saidIn(chat.model.requests.at(-1)!).includes("the note says OCHRE"));
  // The model repeats what it was told; the person's own line stays as it was typed.
  await terminal.sees("--- end notes/n.txt");
  expect((await terminal.screen()).split("begin notes/n.txt")).toHaveLength(2);

  writeFileSync(join(folder, "shot.png"), png(1));
  await terminal.enter("what is on @shot.png ?");
  await terminal.sees("attached: shot.png");
  await until("the picture with it", () => saidIn(chat.model.requests.at(-1)!).includes("_uploads"));
  expect(saidIn(chat.model.requests.at(-1)!)).toContain("cannot see pictures");

  const pasted = Array.from({ length: 40 }, (_, at) => `pasted row ${at}`).join("\n");
  await terminal.type("before ");
  await terminal.paste(pasted);
  await terminal.sees("› before [pasted·40·lines·#1]");
  await terminal.press("BSpace");
  await until("the marker to be gone", async () => !(await terminal.screen()).includes("[pasted·40·lines·#1]"));
  await terminal.press("C-y");
  await terminal.press("Enter");
  await until("all of it", () => saidIn(chat.model.requests.at(-1)!).includes("before pasted row 0\npasted row 1\n"));
});
