import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { picturesIn, png } from "../support/images.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { project } from "../support/squads.ts";
import { until } from "../support/until.ts";
import { webModel } from "../support/web/model.ts";
import { GREETER } from "../support/web/seed.ts";

const browser = fileBrowser();
let model: ModelServer;
let daemon: TestDaemon;
let home: string;

const { atTheEnd, end } = collectEndings();
beforeAll(async () => {
  model = await scriptedModel(webModel, undefined, atTheEnd);
  const provider = { type: "openai", baseUrl: model.url, wireApi: "completions", apiKey: "scripted-key-0123456789" };
  const models = [{ id: "scripted", vision: true }];
  home = temporaryHome({ provider: { ...provider, model: "scripted", models } }, atTheEnd);
  daemon = await startDaemonProcess(home, {}, atTheEnd);
});
afterAll(end);

const field = (page: Page) => page.getByRole("textbox", { name: "Message" });
const waiting = (page: Page) => page.getByRole("list", { name: "To be sent along" });
const messagesOf = async (conversation: string) =>
  (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`)).items;

/** Passes a file to an element, as a paste or a drop does. */
const hand = (page: Page, how: "paste" | "drop", name: string, bytes: Buffer) =>
  page.evaluate(
    ([type, fileName, data]) => {
      const transfer = new DataTransfer();
      const content = Uint8Array.from(atob(data!), (letter) => letter.charCodeAt(0));
      transfer.items.add(new File([content], fileName!, { type: "image/png" }));
      const target = document.querySelector(type === "paste" ? "textarea" : ".log")!;
      const init = { bubbles: true, cancelable: true };
      target.dispatchEvent(
        type === "paste"
          ? new ClipboardEvent("paste", { ...init, clipboardData: transfer })
          : new DragEvent("drop", { ...init, dataTransfer: transfer }),
      );
    },
    [how, name, bytes.toString("base64")],
  );

test("files come along by the button, by paste and by drop; pictures are seen before and after, and the model sees them", async () => {
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/chat/sights" });
  await field(page).waitFor();
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Attach", exact: true }).click();
  await (await chooser).setFiles([
    { name: "picked.png", mimeType: "image/png", buffer: png(1) },
    { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# The notes") },
  ]);
  await hand(page, "paste", "pasted.png", png(2));
  await hand(page, "drop", "dropped.png", png(3));
  for (const name of ["picked.png", "pasted.png", "dropped.png"]) await waiting(page).getByRole("img", { name }).waitFor();
  await waiting(page).getByRole("button", { name: "notes.md", exact: true }).waitFor();
  await page.getByRole("button", { name: "Leave out pasted.png" }).click();
  await field(page).fill("repeat: What are these?");
  await page.reload();
  await waiting(page).getByRole("img", { name: "dropped.png" }).waitFor();
  expect(await waiting(page).getByRole("listitem").count()).toBe(3);
  await field(page).press("Enter");
  const shown = page.getByRole("log").getByRole("list", { name: "Attached files" });
  for (const name of ["picked.png", "dropped.png"]) {
    const image = shown.getByRole("img", { name });
    await image.waitFor();
    await until("the picture to be drawn", () => image.evaluate((each) => (each as HTMLImageElement).naturalWidth === 4));
  }
  expect(await waiting(page).count()).toBe(0);
  const [message] = await until("the answer", async () => {
    const items = await messagesOf("sights");
    return items[0]?.status === "done" ? items : undefined;
  });
  expect(message?.attachments.map(({ name }) => name)).toEqual(["picked.png", "notes.md", "dropped.png"]);
  const request = model.requests.findLast((each) => lastUserText(each).includes("What are these?"));
  expect(picturesIn(request)).toEqual([png(1), png(3)]);
  expect(lastUserText(request!)).toContain("# The notes");

  await page.reload();
  await shown.getByRole("img", { name: "picked.png" }).waitFor();
  const saved = page.waitForEvent("download");
  await shown.getByRole("button", { name: "notes.md" }).click();
  expect((await saved).suggestedFilename()).toBe("notes.md");
  await page.getByRole("button", { name: "Retry" }).click();
  await until("the same files again", async () => {
    const items = await messagesOf("sights");
    return items.length === 2 && items[0]!.attachments.length === 3;
  });
  expect(complaints).toEqual([]);
});

test("a file that is too large, or hostile, does no harm, and files alone can be sent", async () => {
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/chat/hostile" });
  await field(page).waitFor();
  const evil = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='document.title=\"owned\"'/>");
  await page.locator("input[type=file]").setInputFiles([
    { name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(10_000_001) },
    { name: "<img src=x onerror=alert(1)>.svg", mimeType: "image/svg+xml", buffer: evil },
  ]);
  await waiting(page).getByText("larger than 10 MB").waitFor();
  await waiting(page).getByRole("button", { name: /\.svg/ }).first().waitFor();
  expect(await waiting(page).getByRole("img").count()).toBe(0);
  await page.getByRole("button", { name: "Send" }).click();
  await until("it to be sent", async () => (await messagesOf("hostile"))[0]?.attachments.length === 1);
  expect(await page.title()).not.toContain("owned");
  await waiting(page).getByText("larger than 10 MB").waitFor();
  expect(complaints).toEqual([]);
});

test("words that are dragged into the box are the browser's own matter, and nothing is attached", async () => {
  const { page } = await openWindow(await browser(), daemon, { path: "/chat/dragged" });
  await field(page).waitFor();
  const isTaken = (type: string) =>
    field(page).evaluate((box, name) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.setData("text/plain", "words from elsewhere");
      return !box.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer }));
    }, type);
  expect([await isTaken("dragover"), await isTaken("drop")]).toEqual([false, false]);
  expect(await page.locator(".box.over").count()).toBe(0);
  expect(await waiting(page).count()).toBe(0);
});

test("an at-sign offers files of the project, by keyboard and by mouse, and Escape keeps what was typed", async () => {
  const folder = project({ ...GREETER, ".gitignore": "secret-greet.txt\n", "secret-greet.txt": "no" });
  await daemon.json("PATCH", "/api/conversations/greeter", { folder });
  const { page } = await openWindow(await browser(), daemon, { path: "/chat/greeter" });
  const offers = page.getByRole("listbox", { name: "Completions" });
  await field(page).click();
  await page.keyboard.type("Look at @gree");
  await offers.getByRole("option", { name: "@src/greet.js" }).waitFor();
  expect(await offers.getByRole("option").allTextContents()).toEqual(["@src/greet.js", "@test/greet.test.js"]);
  const active = () => field(page).getAttribute("aria-activedescendant");
  expect(await active()).toBe(await offers.getByRole("option", { selected: true }).getAttribute("id"));
  await page.keyboard.press("ArrowDown");
  expect(await offers.getByRole("option", { selected: true }).textContent()).toBe("@test/greet.test.js");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(() => field(page).inputValue(), { timeout: 15_000 }).toBe("Look at @src/greet.js ");
  expect(await offers.count()).toBe(0);
  await page.keyboard.type("and @READ");
  await offers.getByRole("option", { name: "@README.md" }).click();
  await expect.poll(() => field(page).inputValue(), { timeout: 15_000 }).toBe("Look at @src/greet.js and @README.md ");
  await page.keyboard.type("@pack");
  await offers.waitFor();
  await page.keyboard.press("Escape");
  expect(await offers.count()).toBe(0);
  await expect.poll(() => field(page).inputValue(), { timeout: 15_000 }).toBe("Look at @src/greet.js and @README.md @pack");

  // The palette finds the same files from anywhere and inserts them into the current message.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to or do" }).fill("greet.test");
  await page.getByRole("option", { name: /file.*test\/greet\.test\.js/ }).click();
  await expect.poll(() => field(page).inputValue(), { timeout: 15_000 }).toMatch(/@pack @test\/greet\.test\.js $/);
  expect(new URL(page.url()).search).toBe("");
  expect(await messagesOf("greeter")).toEqual([]);
});

test("a slash offers commands, those of the person and the project among them, and Enter does what they say", async () => {
  const folder = project(GREETER);
  mkdirSync(join(folder, ".io", "commands"), { recursive: true });
  writeFileSync(join(folder, ".io", "commands", "say.md"), "---\ndescription: Says it again\n---\nrepeat: $ARGUMENTS, twice");
  await daemon.json("PATCH", "/api/conversations/commands", { folder });
  const { page } = await openWindow(await browser(), daemon, { path: "/chat/commands" });
  const offers = page.getByRole("listbox", { name: "Completions" });
  await field(page).click();
  await page.keyboard.type("/");
  await offers.getByRole("option", { name: "/compact" }).waitFor();
  await page.keyboard.type("sa");
  await offers.getByText("Says it again").waitFor();
  await page.keyboard.press("Tab");
  await expect.poll(() => field(page).inputValue(), { timeout: 15_000 }).toBe("/say ");
  await page.keyboard.type("hello");
  await page.keyboard.press("Enter");
  await page.getByRole("log").getByText("repeat: hello, twice").waitFor();
  await until("the answer", async () => (await messagesOf("commands"))[0]?.reply === "hello, twice");
  await field(page).fill("/clear");
  await page.keyboard.press("Enter");
  await page.getByText("The next message begins anew.").waitFor();
  expect(await messagesOf("commands")).toHaveLength(1);
  await field(page).fill("/new");
  await page.keyboard.press("Enter");
  await until("another conversation", () => !page.url().endsWith("/chat/commands"));
});

test("on a phone everything in the head of a chat can be read and reached", async () => {
  await daemon.ask({ text: "repeat: hello", conversation: "narrow-with-a-rather-long-name", source: "web" });
  const { page } = await openWindow(await browser(), daemon, { width: 390, path: "/chat/narrow-with-a-rather-long-name" });
  const label = page.getByText(/^Context /);
  await label.waitFor();
  const cut = await page.locator(".chat > .head .row > *").evaluateAll((parts) =>
    parts.flatMap((part) => {
      const { left, right, width } = part.getBoundingClientRect();
      // Mode and model are shown as text below the list that selects them.
      const text = part.querySelector("summary, span") ?? part;
      const isCut = text.tagName === "SELECT" || text.scrollWidth > text.clientWidth + 1;
      return left < 0 || right > innerWidth || width < 20 || isCut ? [part.textContent] : [];
    }),
  );
  expect(cut).toEqual([]);
  const boxes = await page
    .locator(".chat > .head .row > *")
    .evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().toJSON() as DOMRect));
  for (const [index, box] of boxes.entries())
    for (const other of boxes.slice(index + 1))
      expect(
        box.right <= other.left + 1 || other.right <= box.left + 1 || box.bottom <= other.top + 1 || other.bottom <= box.top + 1,
      ).toBe(true);
});
