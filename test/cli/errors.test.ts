import { afterAll, expect, test } from "vitest";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { loopback } from "../support/orchestrator.ts";

const model = await scriptedModel(() => ({ status: 400, message: "no" }), {}, afterAll);
const registry = await loopback((_request, response) => void response.writeHead(502).end(), afterAll);
const home = temporaryHome({ skillsRegistry: registry.url }, afterAll);
const gitHost = await loopback((request, response) => {
  response.writeHead(request.url?.startsWith("/broken") ? 500 : 404).end();
}, afterAll);
const git = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: `url.${gitHost.url}/.insteadOf`,
  GIT_CONFIG_VALUE_0: "https://git.invalid/",
  GIT_SSH_COMMAND: "echo 'ssh: connect to host git.invalid port 22: Connection refused' >&2; false",
};
const daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), ...git }, afterAll);
const io = (args: string[]) => runIo(args, home);
const folder = temporaryFolder(afterAll);

test("an argument that cannot be right is wrong usage, whether the command or the daemon sees it", async () => {
  const wrong: [string[], RegExp][] = [
    [["wiki", "list", "--limit", "x"], /^--limit: found "x"; allowed: a whole number from 1 to 1000\.\n$/],
    [["wiki", "list", "--limit", "0"], /^--limit: found "0"; allowed: /],
    [["wiki", "list", "--limit", "1001"], /^--limit: found "1001"; allowed: /],
    [["wiki", "search", "a", "--limit", "1.5"], /^--limit: found "1\.5"; allowed: a whole number from 1 to 200\.\n$/],
    [["wiki", "search", ""], /the query is empty/],
    [["wiki", "read", "../x"], /no page path/],
    [["skill", "add", "http://x/y"], /is not an address/],
    [["skill", "search", ""], /what kind of skill/],
    [["task", "list", "--status", "bogus"], /status: .*queued/],
    [["mcp", "lst"], /^error: unknown command 'lst'\n\(Did you mean list\?\)/],
    [["squad", "create", "a", folder, "--universe", "marvel"], /universe: .*ghostbusters/],
    [["send", "hello", "--conversation", "a b"], /conversation/],
  ];
  for (const [args, why] of wrong)
    expect([args, await io(args)]).toEqual([args, { code: 2, stdout: "", stderr: expect.stringMatching(why) }]);
});

test("what is not there or out of reach is a failure, not wrong usage", async () => {
  const failing: string[][] = [
    ["wiki", "read", "nobody/here"],
    ["squad", "show", "nobody"],
    ["task", "cancel", "t_none"],
    ["skill", "search", "anvil"],
    ["task", "list", "--squad", "nobody"],
    ["undo", "t_none"],
    ["skill", "remove", "nobody"],
    ["mcp", "remove", "nobody"],
  ];
  for (const args of failing) expect([args, (await io(args)).code]).toEqual([args, 1]);
  expect((await runIo(["wiki", "read", "../x"], temporaryHome())).code).toBe(4);
});

test("with --json a failure prints the document that the route answers with", async () => {
  const same: [string[], string, string, unknown?][] = [
    [["wiki", "read", "nobody/here"], "GET", "/api/wiki/pages/nobody/here"],
    [["wiki", "read", "../x"], "GET", "/api/wiki/pages/pages%2F..%2Fx"],
    [["squad", "show", "nobody"], "GET", "/api/squads/nobody"],
    [["skill", "add", "http://x/y"], "POST", "/api/skills", { repoUrl: "http://x/y" }],
    [["skill", "search", "anvil"], "GET", "/api/skills/search?q=anvil"],
    [["task", "list", "--status", "bogus"], "GET", "/api/tasks?status=bogus"],
    [["swarm", "show", "r_none"], "GET", "/api/runs/r_none"],
  ];
  const codes: string[] = [];
  for (const [args, method, path, body] of same) {
    const told = JSON.parse((await io([...args, "--json"])).stdout) as { error: { code: string; message: string } };
    const answer = await daemon.json<typeof told>(method, path, body);
    expect([args, Object.keys(told), told.error.code]).toEqual([args, ["error"], answer.error.code]);
    if (args[0] !== "swarm") expect(told).toEqual(answer);
    codes.push(told.error.code);
  }
  expect(new Set(codes)).toEqual(new Set(["not_found", "bad_request", "unavailable"]));
});

test("a registry or git host that is out of reach is unavailable; a repository that is not there was asked for wrongly", async () => {
  const add = (repoUrl: string) =>
    daemon.fetch("/api/skills", {
      method: "POST",
      body: JSON.stringify({ repoUrl }),
      headers: { "content-type": "application/json" },
    });
  const statusOf: [string, number][] = [
    ["https://127.0.0.1:9/team/ssl.git", 503],
    ["https://git.invalid/broken/one.git", 503],
    ["git@git.invalid:team/one.git", 503],
    ["https://git.invalid/team/ssl.git", 400],
    [`${folder}/nowhere`, 400],
  ];
  for (const [address, status] of statusOf) {
    const response = await add(address);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([address, response.status, error]).toEqual([
      address,
      status,
      { code: status === 503 ? "unavailable" : "bad_request", message: expect.stringContaining("could not be cloned: ") },
    ]);
  }
  expect((await daemon.fetch("/api/skills/search?q=anvil")).status).toBe(503);
  expect(await io(["skill", "add", "https://127.0.0.1:9/team/one.git"])).toMatchObject({ code: 1 });
});

test("with --json wrong usage is one document too, and so is a daemon that is not there", async () => {
  const usage: [string[], RegExp][] = [
    [["skill", "add"], /^missing required argument 'repository'/],
    [["wiki", "list", "--frob"], /^unknown option '--frob'/],
    [["wiki", "frobnicate"], /^unknown command 'frobnicate'/],
    [["rules", "lst"], /^unknown command 'lst'\n\(Did you mean list\?\)\n\(The commands of io rules: list, add, remove\)$/],
    [["wiki"], /^io wiki needs a command: list, read, write, /],
    [["wiki", "source"], /^io wiki source needs a command: list, read, write$/],
    [["wiki", "list", "--limit", "x"], /^--limit: found "x"/],
    [["wiki", "write", "a"], /^There is no text/],
  ];
  for (const [args, why] of usage) {
    const { code, stdout } = await io([...args, "--json"]);
    expect([args, code, JSON.parse(stdout || "null")]).toEqual([
      args,
      2,
      { error: { code: "usage", message: expect.stringMatching(why) } },
    ]);
  }
  expect(JSON.parse((await io(["squad", "--json", "list"])).stdout)).toEqual({ items: [] });
  expect(await io(["squad", "help", "list"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Usage: io squad list") });
  expect(await io(["squad"])).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("Usage: io squad ") });
  const alone = await runIo(["status", "--json"], temporaryHome());
  expect([alone.code, JSON.parse(alone.stdout)]).toEqual([
    4,
    { error: { code: "unreachable", message: expect.stringContaining("io start") } },
  ]);
  expect(await io(["skill", "add", "--help", "--json"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("repository"),
  });
});

test("with --json a message that failed is one document, the message", async () => {
  const sent = await io(["send", "hello", "--json"]);
  expect(sent).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Sorry, I encountered an error:/) });
  expect(JSON.parse(sent.stdout)).toMatchObject({ text: "hello", status: "failed" });
});
