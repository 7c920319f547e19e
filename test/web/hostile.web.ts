import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { asked } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { callText } from "../support/orchestrator.ts";
import { git, repository, writeFiles } from "../support/skills.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { askBefore, GREETER, runEnded, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();
const MARK = "pwned";
const HTML = `<img src=x onerror="window.${MARK}=1"><svg onload="window.${MARK}=1"></svg><script>window.${MARK}=1</script>`;
const MARKDOWN = [
  HTML,
  `[click](javascript:window.${MARK}=1)`,
  `[data](data:text/html,<script>window.${MARK}=1</script>)`,
  "![picture](https://elsewhere.invalid/pixel.png)",
  `<a href="https://elsewhere.invalid" onclick="window.${MARK}=1">x</a>`,
  `\`\`\`html"onmouseover="x\n${HTML}\n\`\`\``,
].join("\n\n");

/** Whether something ran or could run: event handler attributes, images, frames, dangerous URLs. */
const trouble = (page: Page) =>
  page.evaluate(`(() => {
    const all = [...document.querySelectorAll("#app *")];
    const runs = all.filter((each) => each.getAttributeNames().some((name) => name.startsWith("on")));
    const loads = all.filter((each) => /^(?:IMG|IFRAME|OBJECT|EMBED|SCRIPT|STYLE|LINK|FORM)$/.test(each.tagName) && !each.matches("form[class], form"));
    const leads = all.filter((each) => each instanceof HTMLAnchorElement && each.hasAttribute("href") && !/^(?:https?|mailto):/.test(each.href));
    return [window.${MARK} ? "it ran" : "", ...[...runs, ...loads, ...leads].map((each) => each.outerHTML.slice(0, 200))].filter(Boolean);
  })()`) as Promise<string[]>;

test("nothing that a model, a page, a squad, a file, a diff, a skill or an issue says is run or loads anything", async () => {
  const daemon = await webDaemon(askBefore("*onerror*"));
  const { page, complaints, foreign } = await openWindow(await browser(), daemon);
  const look = async (path: string, words: string) => {
    await page.goto(daemon.url + path);
    await page.getByText(words).first().waitFor({ state: "attached" });
    expect(await trouble(page), path).toEqual([]);
  };

  await daemon.ask({ text: `repeat: ${MARKDOWN}`, source: "web" });
  await look("/chat/main", "image: picture");
  await page.getByRole("log").getByText("image: picture").waitFor();
  expect(await page.getByRole("log").locator(".answered img").count()).toBe(0);

  await daemon.json("PUT", "/api/wiki/pages/general/bad", { content: `# ${HTML}\n\n${MARKDOWN}\n` });
  await look("/wiki/general/bad", "image: picture");
  await look("/wiki", "onerror");
  await daemon.json("PUT", "/api/wiki/pages/general/map", { content: "# Map\n\nSee [that](bad.md).\n" });
  await look("/wiki?map", "<img src=x");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("onerror");
  await page
    .getByRole("option", { name: /message/ })
    .first()
    .waitFor();
  expect(await trouble(page)).toEqual([]);

  const folder = project({ ...GREETER, [`<img src=x onerror=window.${MARK}=1>.txt`]: "old\n" });
  await squadWith(daemon, folder, "bad", ["backend engineer"]);
  await daemon.json("POST", "/api/squads", {
    name: `<img src=x onerror="window.${MARK}=1">`,
    projectPath: project(),
    slug: "named",
  });
  await daemon.json("POST", "/api/squads/bad/decisions", { decision: HTML, context: MARKDOWN });
  await look("/squads", "onerror");
  await look("/squads/bad", "onerror");

  const task = await ended(daemon, (await delegate(daemon, "bad", { task: `Do it ${HTML}` })).id);
  writeFiles(folder, {});
  await look(`/tasks/${task.id}`, "onerror");
  await page.locator(".line.added").first().waitFor();
  expect(await trouble(page)).toEqual([]);

  const skill = repository({ "bad-skill/SKILL.md": `---\nname: bad-skill\ndescription: '${HTML}'\n---\n\n${MARKDOWN}\n` });
  expect(await daemon.json("POST", "/api/skills", { repoUrl: skill })).toMatchObject({ items: [{ slug: "bad-skill" }] });
  await look("/skills/bad-skill", "javascript:");

  const repo = project(GREETER);
  git(repo, "commit", "-q", "--allow-empty", "-m", HTML);
  const run = await daemon.json<Run>("POST", "/api/runs", { projectPath: repo, issue: `${HTML}\n\n${MARKDOWN}` });
  await runEnded(daemon, run.id);
  await look(`/runs/${run.id}`, "onerror");
  await look("/runs", "onerror");

  await daemon.json("POST", "/api/messages", { text: callText("shell", { command: `echo '${HTML}'` }) });
  await asked(daemon);
  await look("/usage", "onerror");

  expect(foreign).toEqual([]);
  expect(complaints).toEqual([]);
});

/** HTML that no markdown parser should let through. */
const DIRTY = [
  HTML,
  `<p onclick="window.${MARK}=1" style="background:url(https://elsewhere.invalid/x)" id="app" class="primary">text</p>`,
  `<a href="javascript:window.${MARK}=1">a</a><a href=" java\tscript:window.${MARK}=1">b</a><a href="data:text/html,x">c</a>`,
  '<iframe src="https://elsewhere.invalid"></iframe><object data="x"></object><link rel="stylesheet" href="//elsewhere.invalid">',
  '<form action="/api/stop" method="post"><button>Stop</button></form><base href="https://elsewhere.invalid/">',
  `<math><mtext><table><mglyph><style><img src=x onerror="window.${MARK}=1">`,
  `<math href="javascript:window.${MARK}=1" xlink:href="javascript:window.${MARK}=1"><maction actiontype="toggle">x</maction></math>`,
  `<math><semantics><annotation-xml encoding="text/html"><img src=x onerror="window.${MARK}=1"></annotation-xml></semantics></math>`,
].join("");

test("what got past the reader of markdown as HTML is cleaned before it is shown", async () => {
  const daemon = await webDaemon();
  await daemon.ask({ text: "repeat: text", source: "web" });
  await daemon.json("PUT", "/api/wiki/pages/general/bad", { content: "# Bad\n" });
  const { page, foreign } = await openWindow(await browser(), daemon, { path: "/settings" });
  // Simulates a parser that lets everything through: each of its results also contains this.
  await page.addInitScript(`(() => {
    const { set } = Object.getOwnPropertyDescriptor(Worker.prototype, "onmessage");
    Object.defineProperty(Worker.prototype, "onmessage", { set(hear) {
      set.call(this, ({ data }) => hear({ data: typeof data.result === "string" ? { ...data, result: data.result + ${JSON.stringify(DIRTY)} } : data }));
    } });
  })()`);
  for (const [path, place] of [
    ["/chat/main", ".answered .markdown"],
    ["/wiki/general/bad", ".markdown"],
  ] as const) {
    await page.goto(daemon.url + path);
    const shown = page.locator(place).filter({ hasText: "text" }).first();
    // Before it is rendered, the text is shown plain.
    await shown
      .locator("p", { hasText: /^text$/ })
      .last()
      .waitFor();
    expect(await trouble(page), path).toEqual([]);
    const clean = (await shown.innerHTML()).replaceAll(/<button type="button" class="copy-code">Copy<\/button>/g, "");
    expect(clean).toMatch(/<p>text<\/p>/);
    expect(clean, path).not.toMatch(
      /<(?:img|svg|script|iframe|object|link|form|button|base|style|mglyph|maction|semantics|annotation)|\son|style=|javascript|data:|id=|href=""|class="primary"/i,
    );
  }
  expect(await page.evaluate(`window.${MARK}`)).toBeUndefined();
  expect(foreign).toEqual([]);
});
