import { expect, test } from "vitest";
import type { Task } from "../../src/protocol/squads.ts";
import { asked, finishedMessage } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { callText } from "../support/orchestrator.ts";
import { repository } from "../support/skills.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";
import { hands } from "../support/web/keys.ts";
import { askBefore, GREETER, runEnded, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("chat, dialogs and questions by keys alone: send, queue, change, take back, stop, unfold, jump, decide", async () => {
  const daemon = await webDaemon(askBefore("echo *"));
  for (let at = 0; at < 4; at += 1) await daemon.ask({ text: `question ${at}`, source: "web" });
  await daemon.ask({ text: callText("wiki_write", { path: "a", content: "# A\n" }), source: "web" });
  const { page } = await openWindow(await browser(), daemon);
  const { press, type, reach, use, fill, holds } = hands(page);
  const [log, field] = [page.getByRole("log"), page.getByLabel("Message")];
  await log.getByText("wiki_write").first().waitFor();

  await press("Tab");
  expect(await holds(page.getByRole("link", { name: "Skip to the view" }))).toBe(true);
  await press("Enter");
  await use(page.getByText("Context", { exact: false }).first());
  await page.getByRole("cell", { name: "instructions" }).waitFor();
  await press("Enter");
  await use(page.locator("summary", { hasText: "Questions" }));
  await use(page.getByRole("button", { name: /^question 0/ }));
  await until("the first turn to be in sight", () => holds(page.locator(".turn").first()));
  await press("Enter");
  await use(log.locator("summary").first());
  await log.getByText('"content": "# A').waitFor();

  await fill(field, "count slowly 2000");
  await press("Enter");
  await page.getByText("word3 ").waitFor();
  await type("one more");
  await press("Alt+Enter");
  await type("not wanted");
  await press("Alt+Enter");
  const card = (words: string) => page.getByRole("list", { name: "Queued" }).getByRole("listitem").filter({ hasText: words });
  await card("not wanted").waitFor();
  await reach(card("not wanted").getByRole("button", { name: "Take back" }), "Shift+Tab");
  await press("Enter");
  await card("not wanted").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Skip to the view" }).focus();
  await use(card("one more").getByRole("button", { name: "Change" }));
  const words = page.getByLabel("Queued words");
  await until("the words to be at hand", () => holds(words));
  await press("Control+a");
  await type("repeat: changed");
  await use(page.getByRole("button", { name: "Keep" }));
  await until("the focus to be back", () => holds(card("changed").getByRole("button", { name: "Change" })));
  await reach(log, "Shift+Tab");
  await press("Home");
  await use(page.getByRole("button", { name: "To the end" }));
  await fill(field, "");
  await press("Escape");
  await page.getByText("(cancelled)").first().waitFor();

  await press("Control+k");
  const palette = page.getByRole("dialog", { name: "Palette" });
  const query = page.getByRole("combobox", { name: "Go to or do" });
  await until("the palette to be at hand", () => holds(query));
  for (let at = 0; at < 6; at += 1) await press("Tab");
  expect(
    await palette.evaluate((element) => {
      const { activeElement, body } = element.ownerDocument;
      return activeElement === body || element.contains(activeElement);
    }),
  ).toBe(true);
  await query.focus();
  await type("question 2");
  await palette.getByRole("option", { name: /message.*question 2/ }).waitFor();
  await press("Escape");
  await until("the focus to be back in the chat", () => holds(field));
  await press("Control+k");
  await until("the palette to be at hand", () => holds(query));
  await press("Control+k");
  await palette.waitFor({ state: "detached" });
  await until("the focus to be back in the chat", () => holds(field));
  const skip = page.getByRole("link", { name: "Skip to the view" });
  await skip.focus();
  await press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await press("Control+k");
  await until("the palette to be at hand", () => holds(query));
  await press("Escape");
  await until("the focus to be back on the link", () => holds(skip));
  await field.focus();
  await press("Control+k");
  await until("the palette to be at hand", () => holds(query));
  await type("theme dark");
  await press("Enter");
  expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");

  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: callText("shell", { command: "echo hi" }) });
  await asked(daemon);
  const needs = page.getByRole("article", { name: "Approval" });
  await needs.getByText("echo hi").waitFor();
  await page.getByRole("link", { name: "Skip to the view" }).focus();
  await reach(needs.getByRole("combobox"));
  await press("ArrowDown");
  await needs.getByText("The rule that is kept").waitFor();
  await fill(needs.getByRole("textbox"), "by keys");
  await use(needs.getByRole("button", { name: "Deny" }));
  expect((await finishedMessage(daemon, id)).reply).toContain("by keys");

  await page.getByRole("link", { name: "Skip to the view" }).focus();
  await use(
    page
      .getByRole("button", { name: "More about this conversation" })
      .or(page.locator('summary[aria-label^="More about"]'))
      .first(),
  );
  await use(page.getByRole("button", { name: "Rename" }));
  await until("the title to be at hand", () => holds(page.getByLabel("Title")));
  await press("Control+a");
  await type("By keys");
  await press("Enter");
  await page.getByRole("heading", { name: "By keys" }).waitFor();
  await page.getByRole("list", { name: "Conversations" }).getByRole("link", { name: "By keys" }).waitFor();
  const more = page.locator('summary[aria-label^="More about"]');
  await until("the focus to be back on the menu", () => holds(more));
  await press("Enter");
  await use(page.getByRole("button", { name: "Delete", exact: true }));
  await until("Never mind to be at hand", () => holds(page.getByRole("alertdialog").getByRole("button", { name: "Never mind" })));
  await press("Enter");
  await until("the focus to be back on the menu", () => holds(more));
  await page.setViewportSize({ width: 390, height: 900 });
  const menu = page.getByRole("button", { name: "Menu" });
  await menu.focus();
  await press("Enter");
  await reach(page.getByRole("button", { name: "New conversation" }));
  await press("Escape");
  await until("the focus to be back on the button of the menu", () => holds(menu));
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole("link", { name: "Skip to the view" }).focus();
  await use(page.getByRole("button", { name: "New conversation" }));
  await until("a new conversation", () => /^\/chat\/[a-z]{3}\d\d-\d{4}/.test(new URL(page.url()).pathname));
});

test("squads, tasks and runs by keys alone: make, add, remove, delegate, comment, start, look at steps, replay, apply", async () => {
  const daemon = await webDaemon();
  await squadWith(daemon, project(GREETER), "greeter", ["backend engineer"]);
  const { id } = await ended(daemon, (await delegate(daemon, "greeter", { task: "Add a farewell" })).id);
  const { page } = await openWindow(await browser(), daemon, { path: "/squads" });
  const { press, type, reach, use, fill, holds } = hands(page);
  const toView = () => page.getByRole("link", { name: "Skip to the view" }).focus();

  await use(page.getByRole("button", { name: "New squad" }));
  await until("the path to be at hand", () => holds(page.getByLabel("Project path")));
  await use(page.getByRole("button", { name: "Never mind" }));
  await until("the focus to be back", () => holds(page.getByRole("button", { name: "New squad" })));
  await press("Enter");
  await until("the path to be at hand", () => holds(page.getByLabel("Project path")));
  await type(project());
  await fill(page.getByLabel("Name"), "Keys");
  await press("Enter");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await toView();
  await use(page.getByRole("button", { name: "Add agent" }));
  await until("the role to be at hand", () => holds(page.getByLabel("Role", { exact: true })));
  await type("poet");
  await fill(page.getByLabel("Charter"), "Every rhyme.");
  await reach(page.getByLabel("Tier"));
  await press("ArrowDown");
  await use(page.getByRole("button", { name: "Take on" }));
  const poet = page.getByRole("listitem").filter({ hasText: "Every rhyme." });
  await use(poet.getByRole("button", { name: "Remove" }));
  await until("No to be at hand", () => holds(poet.getByRole("button", { name: "No" })));
  await press("Enter");
  await until("the focus to be back", () => holds(poet.getByRole("button", { name: "Remove" })));
  await press("Enter");
  await reach(poet.getByRole("button", { name: "Yes" }), "Shift+Tab");
  await press("Enter");
  await poet.waitFor({ state: "detached" });

  await page.goto(`${daemon.url}/tasks`);
  await reach(page.getByLabel("State"));
  await type("done");
  await use(page.getByRole("link", { name: "Add a farewell" }));
  await toView();
  const line = page.getByRole("button", { name: "Comment on line 1", exact: true }).first();
  await use(line);
  await until("the comment to be at hand", () => holds(page.getByLabel("Comment", { exact: true })));
  await press("Escape");
  await until("the focus to be back on the line", () => holds(line));
  await press("Enter");
  await until("the comment to be at hand", () => holds(page.getByLabel("Comment", { exact: true })));
  await type("Say it in French too");
  await use(page.getByRole("button", { name: "Add comment" }));
  await use(page.getByRole("checkbox", { name: "only what failed" }), "Space");
  await page.getByText("Nothing failed.").waitFor();
  await toView();
  await use(page.getByRole("button", { name: /^Ask .* to meet them$/ }));
  await until("the follow-up", async () => {
    const { items } = await daemon.json<{ items: Task[] }>("GET", "/api/tasks");
    return items.some((task) => task.id !== id && task.description.includes("French"));
  });

  await page.goto(`${daemon.url}/runs`);
  await use(page.getByRole("button", { name: "New run" }));
  await until("the path to be at hand", () => holds(page.getByLabel("Project path")));
  await type(project(GREETER));
  await fill(page.getByLabel("Issue"), "Add a farewell(name) function");
  await use(page.getByRole("button", { name: "Start" }));
  await page.getByRole("heading", { name: "Add a farewell(name) function" }).waitFor();
  await runEnded(daemon, new URL(page.url()).pathname.split("/")[2] ?? "");
  await page.getByRole("button", { name: "Apply" }).waitFor();
  await toView();
  const node = page.getByRole("group", { name: "Pipeline" }).getByRole("button", { name: /^pm-reviewer\s*approved/ });
  await use(node);
  await page.getByRole("region", { name: "Step" }).getByText("What it answered").waitFor();
  expect(decodeURIComponent(page.url())).toContain("/steps/spec/review:pm-reviewer");
  await reach(page.getByLabel("Moment"));
  await press("Home");
  await page.getByText("Nothing has begun yet.").waitFor();
  await press("End");
  await reach(page.getByRole("button", { name: "Replay" }), "Shift+Tab");
  await press("Space");
  await page
    .getByRole("button", { name: "Pause" })
    .or(page.getByRole("button", { name: "Replay" }))
    .first()
    .waitFor();
  await reach(page.getByRole("list", { name: "Steps" }));
  await use(page.getByRole("link", { name: "pm", exact: true }).first());
  expect(page.url()).toContain("/steps/spec/draft");
  await toView();
  await use(page.getByRole("button", { name: "Changes of stream 1" }));
  await page.locator(".line.added").first().waitFor();
  await toView();
  await use(page.getByRole("button", { name: "Apply" }));
  await use(page.getByRole("alertdialog").getByRole("button", { name: "Apply" }));
  await page.getByRole("button", { name: "Apply" }).waitFor({ state: "detached" });
});

test("wiki, skills, usage and settings by keys alone: write, find, restore, map, install, switch on, remove, group, set, stop", async () => {
  const daemon = await webDaemon();
  await daemon.json("PUT", "/api/wiki/pages/general/tea", { content: "# Tea\n\nFirst.\n" });
  await daemon.json("PUT", "/api/wiki/pages/general/tea", { content: "# Tea\n\nSecond, with [milk](milk.md).\n" });
  await daemon.ask({ text: callText("wiki_write", { path: "general/agent", content: "# Agent\n" }) });
  const { page } = await openWindow(await browser(), daemon, { path: "/wiki" });
  const { press, type, reach, use, fill } = hands(page);
  const toView = () => page.getByRole("link", { name: "Skip to the view" }).focus();

  await use(page.getByRole("button", { name: "Keep general/agent" }));
  await page.getByText("Nothing was.").waitFor();
  await toView();
  await fill(page.getByRole("searchbox"), "Second");
  await use(page.getByRole("list", { name: "Found" }).getByRole("link", { name: "Tea" }));
  await toView();
  await use(page.getByRole("button", { name: "History" }));
  await page.getByRole("button", { name: "Restore" }).waitFor();
  await use(page.getByRole("button", { name: "Restore" }));
  await page.locator(".markdown").getByText("First.").waitFor();
  await toView();
  await use(page.getByRole("button", { name: "Edit" }));
  await fill(page.getByLabel("Content"), "# Tea\n\nThird, with [milk](milk.md).\n");
  await use(page.getByRole("button", { name: "Preview" }));
  await page.locator(".preview").getByText("Third").waitFor();
  await reach(page.getByRole("button", { name: "Save" }), "Shift+Tab");
  await press("Enter");
  await page.locator(".markdown").getByText("Third").waitFor();
  await toView();
  await use(page.getByRole("link", { name: "Map", exact: true }));
  const spot = page.getByRole("group", { name: "Pages and their links" }).getByRole("link", { name: "Tea" });
  await use(spot);
  await page.getByRole("heading", { name: "Tea" }).waitFor();

  const url = repository({ "notes/SKILL.md": "---\nname: notes\ndescription: Takes notes.\n---\n\n# Notes\n" });
  await page.goto(`${daemon.url}/skills`);
  await fill(page.getByLabel("Git URL"), url);
  await press("Enter");
  await use(page.getByRole("link", { name: "notes" }));
  const detail = page.getByRole("region", { name: "notes" });
  await detail.getByText("# Notes").waitFor();
  await use(detail.getByRole("button", { name: "Switch on" }));
  await detail.getByRole("button", { name: "Switch off" }).waitFor();
  await toView();
  await use(detail.getByRole("button", { name: "Remove" }));
  await page.getByRole("link", { name: "notes" }).waitFor({ state: "detached" });

  await page.goto(`${daemon.url}/usage`);
  await reach(page.getByLabel("By"));
  await type("model");
  await page.getByRole("columnheader", { name: "model", exact: true }).waitFor();

  await page.goto(`${daemon.url}/settings`);
  await reach(page.getByLabel("system"));
  await press("ArrowDown", "ArrowDown");
  expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
  await fill(page.getByLabel("Find a key"), "maxLive");
  await fill(page.getByLabel("maxLiveSessions"), "12");
  await press("Enter");
  await page.getByText("Saved.").waitFor();
  await toView();
  await use(page.getByRole("button", { name: "Stop everything" }));
  // A dialog must be answered before anything else opens.
  await press("Control+k");
  await use(page.getByRole("alertdialog").getByRole("button", { name: "Stop everything" }));
  await page.getByText("Ended: 0 messages").waitFor();
  expect(await page.getByRole("dialog", { name: "Palette" }).count()).toBe(0);
});
