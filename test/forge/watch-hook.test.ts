import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Watch, WatchDetail } from "../../src/protocol/watches.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { type ForgeDouble, startForge, TOKEN } from "../support/forge/server.ts";
import { openIssue, projectAt, setLabel, triggerOf } from "../support/forge/watched.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { play } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const SECRET = "a-secret-of-the-webhook";
const { atTheEnd, end } = collectEndings();
let double: ForgeDouble;
let model: ModelServer;
let daemon: TestDaemon;
let watch: Watch;

beforeAll(async () => {
  double = await startForge(gitHubDialect(), atTheEnd);
  model = await scriptedModel(play(), undefined, atTheEnd);
  // Polling is effectively off during this test.
  const config = { mode: "auto", github: { apiUrl: double.apiUrl, pollMs: 86_400_000 }, forge: { webhookSecret: SECRET } };
  daemon = await startDaemonProcess(
    temporaryHome(config, atTheEnd),
    { ...providerEnvironment(model.url), GH_TOKEN: TOKEN },
    atTheEnd,
  );
  const project = projectAt(double, "acme/widget", atTheEnd);
  watch = await daemon.json<Watch>("POST", "/api/watches", { project, label: "io" });
}, 120_000);
afterAll(end);

const show = () => daemon.json<WatchDetail>("GET", `/api/watches/${watch.id}`);
const delivery = (repo: string, host = watch.host) =>
  JSON.stringify({ action: "labeled", repository: { full_name: repo, html_url: `https://${host}/${repo}` } });
const signed = (body: string, secret = SECRET) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

/** Delivers a webhook as a forge does: without IO's token. */
async function deliver(body: string, signature: string | undefined = signed(body)) {
  const response = await fetch(`${daemon.url}/hooks/forge`, {
    method: "POST",
    body,
    headers: {
      ...{ "content-type": "application/json", connection: "close" },
      ...(signature !== undefined && { "x-hub-signature-256": signature }),
    },
  });
  return { status: response.status, body: (await response.json()) as { error?: { message: string }; isWatched?: boolean } };
}

test("a signed delivery has the repository looked at at once; what it says is not believed", async () => {
  const repo = double.repos["acme/widget"]!;
  await until("the first look", async () => (await show()).lookedAt !== null);
  const issue = openIssue(repo, "Greet people", "Say hello.");
  setLabel(repo, issue, "ted");
  const claimed = JSON.stringify({
    ...JSON.parse(delivery("Acme/Widget")),
    action: "labeled",
    issue: { number: 999 },
    sender: { login: "mona" },
  });
  expect(await deliver(claimed)).toEqual({ status: 202, body: { isWatched: true } });
  await triggerOf(
    () => daemon,
    watch.id,
    ({ number, state }) => number === issue && state === "done",
  );
  expect((await show()).triggers.map(({ number, by }) => [number, by])).toEqual([[issue, "ted"]]);
  // The same delivery again has no further effect.
  const { lookedAt } = await show();
  expect((await deliver(claimed)).status).toBe(202);
  await until("another look", async () => (await show()).lookedAt !== lookedAt);
  expect(repo.pulls).toHaveLength(1);
}, 300_000);

test("without the right signature nothing is looked at, and nothing is read", async () => {
  const { lookedAt, nextAt } = await show();
  const body = delivery("acme/widget");
  const refused = await Promise.all([
    deliver(body, ""),
    deliver(body, signed(body, "another-secret-of-some-length")),
    deliver(body, signed(`${body} `)),
    deliver(body, signed(body).replace("sha256=", "sha1=")),
    deliver(body, SECRET),
  ]);
  expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401]);
  expect(JSON.stringify(refused)).not.toContain(SECRET);
  expect((await deliver("x".repeat(1_100_000))).status).toBe(413);
  expect((await deliver("[1, 2]")).status).toBe(400);
  expect((await deliver(JSON.stringify({ repository: { full_name: 1 } }))).status).toBe(400);
  expect((await deliver(delivery("acme/other"))).body).toEqual({ isWatched: false });
  expect((await deliver(delivery("acme/widget", "elsewhere.example"))).body).toEqual({ isWatched: false });
  expect(await show()).toMatchObject({ lookedAt, nextAt });
});

test("a delivery that names a renamed repository by its new name has it looked at, and a stranger is asked for once", async () => {
  const other = projectAt(double, "acme/before", atTheEnd);
  const { id } = await daemon.json<Watch>("POST", "/api/watches", { project: other, label: "io" });
  const lookedAt = async () => (await daemon.json<Watch>("GET", `/api/watches/${id}`)).lookedAt;
  const first = await until("the first look", async () => (await lookedAt()) ?? undefined);
  double.rename("acme/before", "acme/after");
  await deliver(delivery("acme/After"));
  await until("the look after the renaming", async () => (await lookedAt()) !== first);
  /** A look at the repository waits for all earlier requests to its forge. */
  const anotherLook = async () => {
    const before = await lookedAt();
    expect((await deliver(delivery("acme/after"))).body).toEqual({ isWatched: true });
    await until("another look", async () => (await lookedAt()) !== before);
  };
  const asked = () => double.calls.filter(({ what }) => /^GET \/repos\/acme\/\w+$/.test(what)).length;
  const before = asked();
  await deliver(delivery("acme/stranger"));
  await anotherLook();
  const once = asked();
  expect(once).toBeGreaterThan(before);
  for (let time = 0; time < 3; time += 1) await deliver(delivery("acme/stranger"));
  await anotherLook();
  expect(asked()).toBe(once);
  await daemon.json("DELETE", `/api/watches/${id}`);
}, 60_000);

test("the secret is never shown, and without one there is nothing at the address", async () => {
  expect(JSON.stringify(await daemon.json("GET", "/api/config"))).not.toContain(SECRET);
  await daemon.json("PATCH", "/api/config", { forge: {} });
  const body = delivery("acme/widget");
  expect((await deliver(body)).status).toBe(404);
});
