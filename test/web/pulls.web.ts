import { expect, test } from "vitest";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { startForge, TOKEN } from "../support/forge/server.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play } from "../support/swarm/index.ts";
import { runEnded } from "../support/web/seed.ts";

const browser = fileBrowser();

test("a run's pull request is opened by a button once, stands beside the run and leads to the forge", async () => {
  const forge = await startForge(gitHubDialect());
  const project = makeProject({}, true);
  forge.add("me/greeter", project);
  git(project, "remote", "add", "origin", `${forge.url}/me/greeter.git`);
  const model = await scriptedModel(play());
  const home = temporaryHome({ mode: "full", github: { apiUrl: forge.apiUrl } });
  const daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), GH_TOKEN: TOKEN });
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project, issue: "Add a greeting" });
  await runEnded(daemon, begun.id);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: `/runs/${begun.id}` });
  const details = page.getByRole("complementary");
  await details.getByRole("button", { name: "Open a pull request" }).click();
  const link = details.getByRole("link", { name: /^me\/greeter#\d+$/ });
  await link.waitFor({ timeout: 60_000 });
  const { items } = await daemon.json<{ items: PullRequest[] }>("GET", `/api/pulls?owner=${begun.id}`);
  expect(items).toHaveLength(1);
  expect(await link.getAttribute("href")).toBe(items[0]?.url);
  expect(await link.getAttribute("rel")).toContain("noopener");
  expect(await details.getByRole("button", { name: "Open a pull request" }).count()).toBe(0);
  await page.reload();
  await link.waitFor();
  expect(complaints).toEqual([]);
});
