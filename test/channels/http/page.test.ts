import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestDaemon } from "../../support/daemon.ts";
import { collectEndings } from "../../support/home.ts";
import { until } from "../../support/until.ts";
import { webDaemon } from "../../support/web/seed.ts";

let daemon: TestDaemon;
let cookie = "";

/** Requests the page as a browser does. */
const page = (path: string, headers: Record<string, string> = {}) => fetch(daemon.url + path, { headers });

const { atTheEnd, end } = collectEndings();
afterAll(end);
beforeAll(async () => {
  daemon = await webDaemon({}, { atTheEnd });
  const signedIn = await fetch(`${daemon.url}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: daemon.token }),
  });
  cookie = (signedIn.headers.get("set-cookie") ?? "").split(";", 1)[0]!;
});

test("a cookie, which every port of this host is sent, shows the field to type into and nothing that was said", async () => {
  await daemon.ask({ text: "repeat: the secret word", source: "web" });
  for (const path of ["/", "/chat/main", "/chat/another", "/squads"]) {
    const text = await (await page(path, { cookie })).text();
    expect(text).toContain("data-signed-in");
    expect(text).not.toContain("secret word");
    expect(text.match(/<script/g)).toHaveLength(1);
  }
  expect(await (await page("/", { cookie })).text()).toContain('<textarea rows="1" aria-label="Message"');
  for (const headers of [{}, { cookie: cookie.replace(/.$/, "") }])
    expect(await (await page("/", headers)).text()).not.toContain("<textarea");
});

test("a name in the address is no markup", async () => {
  const text = await (await page(`/chat/${encodeURIComponent('"><script>x</script>')}`, { cookie })).text();
  expect(text).not.toContain("<script>x");
});

test("the theme that was chosen is there from the first moment, and nothing else from that cookie", async () => {
  expect(await (await page("/", { cookie: "io_theme=dark" })).text()).toMatch(/<html data-theme="dark" /);
  expect(await (await page("/", { cookie: "io_theme=%22%3E%3Cscript%3E" })).text()).toMatch(/<html lang/);
});

test("its policy names nobody but this server, for anything", async () => {
  const policy = (await page("/")).headers.get("content-security-policy") ?? "";
  const rules = Object.fromEntries(policy.split("; ").map((rule) => [rule.split(" ", 1)[0]!, rule.split(" ").slice(1)]));
  expect(rules).toMatchObject({ "default-src": ["'none'"], "base-uri": ["'none'"], "frame-ancestors": ["'none'"] });
  expect(rules["script-src"]).toEqual(["'self'"]);
  for (const sources of Object.values(rules))
    for (const source of sources) expect(["'none'", "'self'", "data:"]).toContain(source);
});

test("a page that opened this one is cut off from it, and who typed its address pays nothing for that", async () => {
  const policy = async (headers: Record<string, string>) => (await page("/", headers)).headers.get("cross-origin-opener-policy");
  expect(await policy({ "sec-fetch-site": "cross-site" })).toBe("same-origin");
  expect(await policy({ "sec-fetch-site": "same-site" })).toBe("same-origin");
  expect(await policy({})).toBe("same-origin");
  expect(await policy({ "sec-fetch-site": "none" })).toBeNull();
});

test("a list says after which event the news goes on, so that whoever follows from there misses nothing", async () => {
  await daemon.ask({ text: "before", conversation: "talk", source: "web" });
  const list = await daemon.fetch("/api/messages?conversation=talk");
  const lastEventId = list.headers.get("last-event-id")!;
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "repeat: after", conversation: "talk" });
  const { of } = await daemon.follow({ conversation: "talk", lastEventId });
  const [finished] = await until("the end of the answer", () => {
    const all = of("message.finished");
    return all.length > 0 ? all : undefined;
  });
  expect(finished?.body).toMatchObject({ id });
  expect(of("message.queued")).toHaveLength(1);
});
