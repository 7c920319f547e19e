import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { startCluster } from "../support/cluster.ts";
import { until } from "../support/until.ts";

const browser = fileBrowser();

test("the settings show who works for this host, invite another, and drain or revoke one after asking", async () => {
  const cluster = await startCluster();
  const { page, complaints } = await openWindow(await browser(), cluster.daemon, { path: "/settings" });
  const workers = page.getByRole("region", { name: "Workers" });
  await workers.getByText("Nobody has joined yet.").waitFor();
  await workers.getByRole("button", { name: "Invite a worker" }).click();
  const line = await workers.getByRole("group", { name: "Invitation" }).getByText("io worker join").textContent();
  expect(line).toMatch(/^io worker join tls:\/\/127\.0\.0\.1:\d+\/SU\w+\/[\w-]+ --code [\w-]{14}$/);
  await workers.getByRole("button", { name: "Hide it" }).click();

  const alpha = await cluster.join("alpha", ["--labels", "gpu,big", "--capacity", "3"]);
  const row = workers.getByRole("row").filter({ hasText: "alpha" });
  await row.getByText("ready", { exact: true }).waitFor();
  for (const words of ["gpu, big", "0 of 3", "IO 0.1.0, engine rehearsal"]) await row.getByText(words).waitFor();
  await row.getByRole("button", { name: "Drain alpha" }).click();
  await row.getByRole("button", { name: "No" }).click();
  await row.getByRole("button", { name: "Drain alpha" }).click();
  await row.getByRole("button", { name: "Yes" }).click();
  await row.getByText("draining", { exact: true }).waitFor();
  expect(await alpha.ended).toBe(0);
  await row.getByRole("button", { name: "Revoke alpha" }).click();
  await row.getByRole("button", { name: "Yes" }).click();
  await workers.getByText("Nobody has joined yet.").waitFor();
  await until("the daemon to know nobody", async () => (await cluster.workers()).length === 0);
  expect(complaints).toEqual([]);

  await cluster.io("cluster", "stop");
  await workers.getByText("All work is done on this host.").waitFor();
});
