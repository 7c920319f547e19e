import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { ended, project, squadWith } from "../support/squads.ts";
import { play, write } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";
import { GREETER, runEnded, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("a squad is made from a path and a name; the suggested agents come along, and one can be added and removed", async () => {
  const daemon = await webDaemon();
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/squads" });
  await page.getByRole("button", { name: "New squad" }).click();
  await page.getByLabel("Project path").fill(project(GREETER));
  await page.getByLabel("Name").fill("Greeters");
  await page.getByText("with the agents it suggests").waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/\/squads\/greeters$/);
  await page.getByRole("heading", { name: "Greeters" }).waitFor();
  const { items } = await daemon.json<{ items: { characterName: string }[] }>(
    "GET",
    `/api${new URL(page.url()).pathname}/agents`,
  );
  expect(items.length).toBeGreaterThan(0);
  await page.getByRole("button", { name: "Add agent" }).click();
  await page.getByLabel("Role", { exact: true }).fill("poet");
  await page.getByLabel("Charter").fill("Every rhyme.");
  await page.getByRole("button", { name: "Take on" }).click();
  const card = page.getByRole("listitem").filter({ hasText: "poet" }).filter({ hasText: "Every rhyme." });
  await card.getByRole("button", { name: "Remove" }).click();
  await card.getByRole("button", { name: "Yes" }).click();
  await card.waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
});

test("Create works with the path and the name alone, without waiting for the analysis", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon, { path: "/squads" });
  await page.getByRole("button", { name: "New squad" }).click();
  await page.getByLabel("Name").fill("Quick");
  await page.getByLabel("Project path").fill(project());
  await page.getByLabel("Project path").press("Enter");
  await page.getByRole("heading", { name: "Quick" }).waitFor();
});

test("a task is watched live; a comment on a line of its changes goes to the agent with that line", async () => {
  const daemon = await webDaemon();
  await squadWith(daemon, project(GREETER), "greeter", ["backend engineer"]);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/squads/greeter" });
  await page.getByLabel("Task", { exact: true }).fill("Add a farewell");
  await page.getByRole("button", { name: "Delegate" }).click();
  await page.getByRole("link", { name: "Add a farewell" }).first().click();
  await page.getByRole("region", { name: "Result" }).getByText("last exited 0").waitFor();
  await page.getByRole("region", { name: "Activity" }).getByText("node --test").first().waitFor();
  await page.getByRole("button", { name: "Comment on line 1" }).click();
  await page.getByLabel("Comment", { exact: true }).fill("Say it in French too");
  await page.getByRole("button", { name: "Add comment" }).click();
  await page.getByRole("button", { name: /^Ask .* to meet them$/ }).click();
  const follow = await until("the follow-up", async () => {
    const { items } = await daemon.json<{ items: Task[] }>("GET", "/api/tasks");
    return items.length === 2 ? items[0] : undefined;
  });
  expect(follow.description).toContain("Say it in French too");
  expect(follow.description).toContain("export const farewell");
  expect((await ended(daemon, follow.id)).status).toBe("done");
  await page.getByRole("heading", { name: "Meet these comments" }).waitFor();
  expect(complaints).toEqual([]);
});

test("a run is started here and watched to its end, replayed, applied, and its steps can be linked to and reloaded", async () => {
  const daemon = await webDaemon();
  const folder = project(GREETER);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/runs" });
  await page.getByRole("button", { name: "New run" }).click();
  await page.getByLabel("Project path").fill(folder);
  await page.getByLabel("Issue").fill("Add a farewell(name) function");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("heading", { name: "Add a farewell(name) function" }).waitFor();
  const id = new URL(page.url()).pathname.split("/")[2] ?? "";
  await page.getByRole("button", { name: "Apply" }).waitFor({ timeout: 60_000 });
  const run = await runEnded(daemon, id);
  expect(run.outcome).toBe("approved");
  const picture = page.getByRole("group", { name: "Pipeline" });
  for (const { name } of run.phases) await picture.getByText(name, { exact: true }).first().waitFor();

  expect(await picture.locator(".voided").count()).toBe(0);

  // Nothing above the playhead changes its height, or it would move away from the pointer that drags it.
  const placeOf = async () => Math.round((await page.getByLabel("Moment").boundingBox())?.y ?? 0);
  const place = await placeOf();
  await page.getByLabel("Moment").focus();
  await page.keyboard.press("Home");
  await picture.getByText("Nothing has begun yet.").waitFor();
  expect(await placeOf()).toBe(place);
  await page.keyboard.press("End");
  await picture.getByText("approved").last().waitFor();

  const widthOf = async () => (await picture.locator("svg").boundingBox())?.width ?? 0;
  const fitted = await widthOf();
  expect(fitted).toBeLessThanOrEqual((await picture.boundingBox())?.width ?? 0);
  await page.getByRole("button", { name: "Zoom in" }).click();
  await until("a larger picture", async () => (await widthOf()) > fitted * 1.1);
  await page.getByRole("button", { name: "Fit" }).click();
  await until("the picture to fit again", async () => Math.abs((await widthOf()) - fitted) < 2);

  await page.getByRole("link", { name: "pm", exact: true }).first().click();
  await page.getByRole("region", { name: "Step" }).getByText("What it answered").waitFor();
  expect(page.url()).toContain("/steps/spec/draft");
  await page.reload();
  await page.getByRole("region", { name: "Step" }).getByRole("heading", { name: "Spec" }).waitFor();
  await page.getByText("What it was asked").click();
  await page.getByRole("region", { name: "Step" }).getByText("Add a farewell(name) function").first().waitFor();

  await page.getByRole("button", { name: "Changes of stream 1" }).click();
  await page.locator(".line.added").first().waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  const question = page.getByRole("alertdialog");
  await question.getByText(`The branch ${run.branch} is merged`).waitFor();
  await page.keyboard.press("Escape");
  await question.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "Apply" }).waitFor({ state: "detached" });
  expect((await daemon.json<Run>("GET", `/api/runs/${id}`)).applied).toBe(true);
  expect(complaints).toEqual([]);
});

test("a step that is at work shows what it says and does as it comes, from its beginning after a reload, and then its answer", async () => {
  const words = Array.from({ length: 150 }, (_, at) => `word${at + 1} `);
  // Long enough for the call before it to be seen.
  const answer = Array.from({ length: 150 }, (_, at) => `answer${at + 1} `);
  // Only the pm's first step is slow. It begins at 0, and goes on at 1 once its call is answered.
  const roles = play(({ role, afterTool, before }) => {
    if (role !== "pm" || before > Number(afterTool)) return undefined;
    return afterTool
      ? { say: answer, gapMs: 60 }
      : { say: words, gapMs: 60, call: [{ tool: "file_ops", args: { operation: "list", path: "." } }] };
  });
  const model = await scriptedModel(roles);
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: `/runs/${begun.id}` });
  await page.getByRole("region", { name: "Timeline" }).getByRole("link", { name: "pm", exact: true }).first().click();
  const output = page.getByRole("region", { name: "Step" }).getByLabel("Live output");
  await output.getByText("word5 ").waitFor();
  await page.reload();
  await output.getByText("word1 word2 word3").waitFor();
  await output.getByText("file_ops").waitFor();
  expect((await output.textContent())?.match(/word1 /g)).toHaveLength(1);
  await page.getByRole("region", { name: "Step" }).getByText("What it answered").waitFor({ timeout: 60_000 });
  expect(await output.count()).toBe(0);
  await runEnded(daemon, begun.id);
  expect(complaints).toEqual([]);
});

test("a check that is running shows what it prints as it comes, from its beginning after a reload", async () => {
  const daemon = await webDaemon();
  const test = "let n = 0; setInterval(() => { console.log('line ' + ++n); if (n > 600) process.exit(); }, 100);\n";
  const files = { ...GREETER, "package.json": JSON.stringify({ scripts: { test: "node slow.js" } }), "slow.js": test };
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(files), issue: "Greet everybody" });
  // From then on, nothing starts until it ends, so no row moves under the pointer.
  await until("the engineer's commit", async () => {
    const { steps } = await daemon.json<Run>("GET", `/api/runs/${begun.id}`);
    return steps.some(({ key, state }) => key === "implement/stream-1/commit/1" && state === "done");
  });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: `/runs/${begun.id}` });
  await page.getByRole("region", { name: "Timeline" }).getByRole("link", { name: "checks", exact: true }).click();
  const output = page.getByRole("region", { name: "Step" }).getByLabel("Live output");
  await output.getByText("line 3\n").waitFor();
  await page.reload();
  await output.getByText("▸ $ npm test").waitFor();
  await output.getByText("line 8\n").waitFor();
  expect((await output.textContent())?.match(/^line 1$/gm)).toHaveLength(1);
  await daemon.json("POST", `/api/runs/${begun.id}/cancel`);
  await runEnded(daemon, begun.id);
  expect(complaints).toEqual([]);
});

test("what the pointer is over in a timeline stays below it while steps begin, and what is new comes once it is gone", async () => {
  const words = Array.from({ length: 60 }, (_, at) => `word${at + 1} `);
  const model = await scriptedModel(
    play(({ role, before }) => (role === "pm" && before === 0 ? { say: words, gapMs: 60 } : undefined)),
  );
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: `/runs/${begun.id}` });
  const timeline = page.getByRole("region", { name: "Timeline" });
  const rows = timeline.locator(".step");
  const base = rows.filter({ has: page.locator("code", { hasText: /^run\/base$/ }) });
  await base.waitFor();
  await base.hover();
  const spot = await base.boundingBox();
  const [x, y] = [spot!.x + 20, spot!.y + spot!.height / 2];
  const under = () =>
    page.evaluate(
      `document.elementFromPoint(${x}, ${y})?.closest(".step")?.querySelector("code")?.textContent`,
    ) as Promise<string>;
  const shown = async () => (await rows.locator("code").allTextContents()).map((key) => key.trim());
  const nodes = await page.getByRole("group", { name: "Pipeline" }).locator(".node").count();
  const seen = new Set<string>();
  await until(
    "a dozen steps to have begun",
    async () => {
      seen.add(await under());
      return (await daemon.json<Run>("GET", `/api/runs/${begun.id}`)).steps.length >= 12;
    },
    60_000,
  );
  await timeline.getByText(/more rows? once you leave the list/).waitFor();
  expect([...seen, await under()]).toEqual(["run/base", "run/base"]);
  // Above the list, the picture has grown. At the end, the replay appears.
  expect(await page.getByRole("group", { name: "Pipeline" }).locator(".node").count()).toBeGreaterThan(nodes);
  await runEnded(daemon, begun.id);
  await page.getByLabel("Moment").waitFor();
  expect(await under()).toBe("run/base");
  await page.mouse.click(x, y);
  await page.waitForURL(/steps\/run\/base$/);

  await page.getByRole("heading", { name: "Timeline" }).hover();
  await until("what was new", async () => (await shown()).includes("spec/review:pm-reviewer/1"));
  await timeline.getByText("once you leave the list").waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
});

test("a task, a run or a squad that is not there says so and leads back", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon, { path: "/tasks/t_none" });
  for (const [path, what] of [
    ["/tasks/t_none", "task"],
    ["/runs/r_none", "run"],
    ["/squads/none", "squad"],
  ] as const) {
    await page.goto(daemon.url + path);
    await page.getByText(`This ${what} is not there.`).waitFor();
    await page.getByRole("main").getByRole("link", { name: "Back to the list" }).click();
    await page.locator("h1").waitFor();
    expect(new URL(page.url()).pathname).toBe(`/${what}s`);
  }
});

test("a pipeline file is checked as it is typed", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon, { path: "/runs" });
  await page.getByText("Check a pipeline file").click();
  await page.getByLabel("swarm.config.yaml").fill("pipeline:\n  - phase: dance\n");
  await page
    .getByText(/line \d+: /)
    .first()
    .waitFor();
});

test("every attempt at a step has a bar of its own that names whose it is, and an approval that a later change voided stays, struck", async () => {
  const roles = play(({ role, before, afterTool, prompt }) => {
    if (role === "pm" && before === 0) return { say: "" };
    if (role === "tester" && before === 0) return { say: "1. It does not greet." };
    if (role === "engineer" && !afterTool && prompt.includes("Findings of tester")) return write("greeting.txt", "hello\n");
    return undefined;
  });
  const model = await scriptedModel(roles);
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const run = await runEnded(daemon, begun.id);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: `/runs/${run.id}` });
  const rows = page.getByRole("region", { name: "Timeline" }).locator(".step");
  const draft = rows.filter({ hasText: "spec/draft:pm" });
  await draft.waitFor();
  expect(await draft.locator(".bar").evaluateAll((bars) => bars.map((bar) => bar.className))).toEqual(["bar failed", "bar done"]);
  await page
    .getByRole("region", { name: "Timeline" })
    .getByRole("img", { name: /^pm: attempt 1 of 2, / })
    .waitFor();
  const named = await rows.evaluateAll((all) =>
    all.map((row) => ({
      of: row.querySelector("a")?.textContent ?? "",
      bars: [...row.querySelectorAll('[role="img"]')].map((bar) => bar.getAttribute("aria-label") ?? ""),
    })),
  );
  expect(named.filter(({ bars }) => bars.length > 0).length).toBeGreaterThan(5);
  expect(named.filter(({ of, bars }) => bars.some((name) => !name.startsWith(`${of}: `)))).toEqual([]);

  const twice = run.loops.find(({ approvals = [] }) => approvals.length > 1);
  expect(twice?.approvals?.[0]?.saw).not.toBe(twice?.approved);
  const reviews = page.getByRole("region", { name: "Reviews" });
  const struck = reviews.locator("s").filter({ hasText: twice!.approvals![0]!.saw.slice(0, 12) });
  await struck.first().waitFor();
  const line = await struck
    .first()
    .evaluate((element) => element.ownerDocument.defaultView?.getComputedStyle(element).textDecorationLine);
  expect(line).toContain("line-through");
  expect(
    await reviews
      .locator("s")
      .filter({ hasText: twice!.approved!.slice(0, 12) })
      .count(),
  ).toBe(0);
  await struck.first().getByRole("link", { name: "round 1" }).click();
  await page.getByRole("region", { name: "Step" }).getByText("APPROVED").first().waitFor();
  expect(complaints).toEqual([]);
});
