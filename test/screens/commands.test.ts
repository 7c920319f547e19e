import { expect, test } from "vitest";
import { openChat } from "../support/chat.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

test("every command answers at once in the middle of a turn, without the model", { timeout: 120_000 }, async () => {
  const { terminal, daemon, model } = await openChat((said) => (said === "wait" ? { stall: "One moment" } : { say: "ok" }), {
    rows: 60,
  });
  await daemon.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: temporaryFolder() });
  await daemon.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  const task = await daemon.json<{ id: string }>("POST", "/api/squads/painters/tasks", { task: "paint the door" });
  await daemon.fetch("/api/wiki/pages/colours.md", {
    method: "PUT",
    headers: { "content-type": "text/markdown" },
    body: "# Colours\n\nThe door is vermilion.\n",
  });
  await terminal.sees("from the background", 30_000);
  const answered = async () => {
    const { items } = await daemon.json<{ items: { status: string }[] }>("GET", "/api/messages?conversation=main");
    return items.some(({ status }) => status === "done");
  };
  await until("the answer to it", answered, 30_000);
  await terminal.enter("wait");
  await terminal.sees("One moment");
  const asked = model.requests.length;
  const answers: [string, string | RegExp][] = [
    ["/help", /\/quit +leaves/],
    ["/status", "Engine: provider, ready"],
    ["/mode ask", "This conversation is in the mode ask"],
    ["/squads", /painters +\w+ +\//],
    ["/agents painters", /Painter +Paints\./],
    ["/tasks", /paint the door/],
    [`/activity ${task.id}`, /started/],
    ["/runs", "No run was started yet."],
    ["/wiki vermilion", "colours.md"],
    ["/skills", "No skills are installed."],
    ["/model", "provider answers with scripted."],
    ["/usage", /model +calls +in +out/],
    ["/approvals", "Nothing waits for you."],
    ["/allow zzzzz", /no approval|not .* approval|There is/i],
    ["/deny", "/deny needs an id"],
    ["/conversation", /› +main +\d+ messages/],
    ["/copy", "copied:"],
    ["/statsu", "Did you mean /status?"],
  ];
  for (const [command, answer] of answers) {
    await terminal.enter(command);
    await terminal.sees(answer);
    await terminal.press("C-l");
  }
  // Shift+Tab selects the next mode, which the status line shows.
  await terminal.press("BTab");
  await terminal.sees("This conversation is in the mode auto");
  await terminal.sees(/connected · auto/);
  expect(model.requests.length).toBe(asked);
  await terminal.writes("\u001b]52;c;");
  await terminal.enter("/cancel");
  await terminal.sees("(cancelled)");
  await terminal.enter("wait");
  await until("the next turn", () => model.requests.length === asked + 1);
  await terminal.enter("/stop");
  await terminal.sees("stopped: 1 messages");
  await terminal.type("a draft here");
  await terminal.press("C-u");
  await terminal.enter("/new other");
  await terminal.sees("conversation other");
  await terminal.enter("hello");
  await terminal.sees("ok");
  await terminal.type("unsent");
  await terminal.press("C-a");
  await terminal.press("C-k");
  await terminal.enter("/conversation main");
  await terminal.sees("conversation main");
  await terminal.enter("/quit");
  await until("the end of the chat", async () => !(await terminal.isOpen()));
});

test("on a narrow screen no answer is broken within a word, and what the help says stays under its column", async () => {
  const { terminal } = await openChat(() => ({ say: "ok" }), { columns: 72, rows: 70 });
  await terminal.enter("/help");
  await terminal.sees(/^squad {2,}a lasting team/m);
  const screen = await terminal.screen();
  expect(screen).toMatch(/^\/clear {2,}has the model begin anew, without what\n {33}was said; nothing is deleted$/m);
  expect(screen).toMatch(/^squad {2,}a lasting team for one project: give it\n {33}tasks, it remembers what was decided\n/m);
  await terminal.enter("/compact");
  await terminal.sees(
    /^Compacted: the next message begins with a short record of what was said\.\nIO finds the rest when it is asked for\.$/m,
  );
});
