import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { filesBelow, modelCallsAll, obedient, rawRequest } from "../support/orchestrator.ts";

const outside = temporaryFolder(afterAll);
const home = temporaryHome({}, afterAll);
const pages = join(home, "wiki", "pages");
const model = await scriptedModel(obedient, {}, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
const io = (args: string[], input?: string) => runIo(args, home, {}, input);

mkdirSync(join(outside, "target"));
symlinkSync(join(outside, "target"), join(pages, "out"));

const ESCAPES = [
  "../stray",
  "../../stray.md",
  "general/../../stray",
  "%2e%2e%2fstray",
  "..%2fstray",
  "/stray",
  "out/stray",
  "a\0stray",
];
const strays = () => [...filesBelow(home), ...filesBelow(outside)].filter((path) => /stray/.test(path));

test("no path leads out of the pages, from the model", async () => {
  const read = await modelCallsAll(
    daemon,
    model,
    "wiki_write",
    ESCAPES.map((path) => ({ path, content: "# stray" })),
  );
  expect(read).toEqual(ESCAPES.map(() => expect.stringMatching(/no page path|NUL character/)));
  expect(strays()).toEqual([]);
});

test("no path leads out of the pages, through the API", async () => {
  for (const path of ESCAPES) {
    const response = await daemon.fetch(`/api/wiki/pages/${encodeURIComponent(path)}`, {
      method: "PUT",
      body: JSON.stringify({ content: "# stray" }),
      headers: { "content-type": "application/json" },
    });
    expect([path, response.status]).toEqual([path, 400]);
    expect(await response.json()).toMatchObject({
      error: { code: "bad_request", message: expect.stringMatching(/no page path|NUL character/) },
    });
  }
  const raw = [
    "/api/wiki/pages/../stray.md",
    "/api/wiki/pages/../../stray.md",
    "/api/wiki/pages/%2e%2e/stray.md",
    "/api/wiki/pages/%2e%2e%2fstray.md",
    "/api/wiki/pages/%252e%252e%252fstray.md",
    "/api/wiki/pages/..%5cstray.md",
    "/api/wiki/pages/general/.%2e/%2e./stray.md",
    "/api/wiki/pages/stray%00.md",
    "/api/wiki/pages//stray.md",
    "/api/wiki/pages/out/stray.md",
    "/api/wiki/sources/%2e%2e",
    "/api/wiki/restore/../pages/../../stray.md",
  ];
  for (const path of raw) {
    const { status } = await rawRequest(daemon, "PUT", path, { content: "# stray" });
    expect([path, status === 400 || status === 404]).toEqual([path, true]);
  }
  expect(strays()).toEqual([]);
});

test("a source's name is made safe and stays among the sources", async () => {
  const response = await rawRequest(daemon, "PUT", "/api/wiki/sources/..%2f..%2fraw%20notes.txt", { content: "notes" });
  expect(JSON.parse(response.text)).toMatchObject({ name: "raw-notes.txt" });
  expect(filesBelow(join(home, "wiki", "sources"))).toEqual([join(home, "wiki", "sources", "raw-notes.txt")]);
});

test("no path leads out of the pages, from the command line", async () => {
  const paths = ["../stray", "..%2fstray", "/stray", "out/stray"];
  for (const wrote of await Promise.all(paths.map((path) => io(["wiki", "write", path, "# stray"])))) {
    expect(wrote).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/no page path|NUL character/) });
  }
  expect((await io(["wiki", "delete", "..", "--yes"])).code).toBe(2);
  expect(strays()).toEqual([]);
});

test("a page holds 10 MB and not a byte more, by every way", async () => {
  const most = `# big\n${"x".repeat(10_000_000 - 6)}`;
  const put = (content: string) =>
    daemon.fetch("/api/wiki/pages/general/big", {
      method: "PUT",
      body: JSON.stringify({ content }),
      headers: { "content-type": "application/json" },
    });
  expect((await put(most)).status).toBe(201);
  const larger = await put(`${most}x`);
  expect(larger.status).toBe(413);
  expect(await larger.json()).toMatchObject({ error: { code: "too_large" } });
  expect((await put("\n".repeat(9_000_000))).status).toBe(200);
  expect((await put("y".repeat(40_000_000))).status).toBe(413);
  writeFileSync(join(outside, "big.md"), `${most}x`);
  const file = await io(["wiki", "write", "general/bigger", "--file", join(outside, "big.md")]);
  expect(file).toMatchObject({ code: 1, stderr: expect.stringContaining("10000000") });
  const marked = await daemon.fetch("/api/wiki/pages/general/big", {
    method: "PUT",
    body: `${most}x`,
    headers: { "content-type": "text/markdown" },
  });
  expect(marked.status).toBe(413);
  expect(readFileSync(join(pages, "general", "big.md"), "utf8")).toBe("\n".repeat(9_000_000));
  await daemon.json("DELETE", "/api/wiki/pages/general/big");
});

test("two writers at once leave whole pages, whoever reads meanwhile", async () => {
  const whole = (letter: string) => `# ${letter}\n${letter.repeat(300_000)}\n`;
  const isWhole = (text: string) => text === whole(text[2] ?? "");
  const put = (letter: string) => daemon.json("PUT", "/api/wiki/pages/general/shared", { content: whole(letter) });
  await put("a");
  let reading = true;
  let reads = 0;
  const reader = (async () => {
    while (reading) {
      const { content } = await daemon.json<{ content: string }>("GET", "/api/wiki/pages/general/shared");
      expect(isWhole(content)).toBe(true);
      expect(isWhole(readFileSync(join(pages, "general", "shared.md"), "utf8"))).toBe(true);
      reads += 1;
    }
  })();
  const commands = ["b", "c", "d"].map((letter) => io(["wiki", "write", "general/shared", "-"], whole(letter)));
  const requests = (async () => {
    for (const letter of "efghijklmnop") await put(letter);
  })();
  for (const { code } of await Promise.all(commands)) expect(code).toBe(0);
  await requests;
  reading = false;
  await reader;
  expect(reads).toBeGreaterThan(3);
  expect(filesBelow(join(home, "wiki", "pages")).filter((path) => path.endsWith(".tmp"))).toEqual([]);
  const { items } = await daemon.json<{ items: unknown[] }>("GET", "/api/wiki/history/general/shared");
  expect(items.length).toBeGreaterThan(3);
});

test("the wiki commands do what the routes do, and print the same documents", { timeout: 90_000 }, async () => {
  const written = await io(["wiki", "write", "projects/boat", "-", "--json"], "# Boat\nTags: sea\nÄnderungen für das Boot\n");
  expect(written.code).toBe(0);
  expect(JSON.parse(written.stdout)).toMatchObject({ path: "pages/projects/boat.md", title: "Boat", tags: ["sea"] });
  expect((await io(["wiki", "write", "projects/boat", "# Boat\nsecond"])).stdout).toContain("Saved pages/projects/boat.md");
  expect((await io(["wiki", "read", "pages/projects/boat.md"])).stdout).toBe("# Boat\nsecond");
  const read = await io(["wiki", "read", "projects/boat", "--json"]);
  expect(JSON.parse(read.stdout)).toEqual(await daemon.json("GET", "/api/wiki/pages/projects/boat"));
  const found = await io(["wiki", "search", "SECOND", "--json"]);
  expect(JSON.parse(found.stdout)).toEqual(await daemon.json("GET", "/api/wiki/search?q=SECOND"));
  expect((await io(["wiki", "search", "second"])).stdout).toMatch(/pages\/projects\/boat\.md {2}Boat\n.*second/);
  expect((await io(["wiki", "list", "--under", "projects"])).stdout).toBe("pages/projects/boat.md  Boat\n");

  const history = JSON.parse((await io(["wiki", "history", "projects/boat", "--json"])).stdout) as {
    items: { version: string }[];
  };
  const first = history.items.at(-1)!.version;
  expect((await io(["wiki", "read", "projects/boat", "--at", first])).stdout).toContain("Änderungen für das Boot");
  expect((await io(["wiki", "restore", "projects/boat", first])).code).toBe(0);
  expect((await io(["wiki", "read", "projects/boat"])).stdout).toContain("Änderungen");

  expect(await io(["wiki", "delete", "projects/boat"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("--yes"),
  });
  expect((await io(["wiki", "delete", "projects/boat", "--yes", "--json"])).code).toBe(0);
  expect(await io(["wiki", "read", "projects/boat"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no page"),
  });

  writeFileSync(join(outside, "mail.txt"), "dear IO");
  expect((await io(["wiki", "source", "write", "mail 1.txt", "--file", join(outside, "mail.txt")])).stdout).toContain(
    "mail-1.txt",
  );
  expect((await io(["wiki", "source", "read", "mail 1.txt"])).stdout).toBe("dear IO");
  expect(JSON.parse((await io(["wiki", "source", "list", "--json"])).stdout)).toEqual(
    await daemon.json("GET", "/api/wiki/sources"),
  );

  const wrong: [string[], number][] = [
    [["wiki", "write", "projects/empty"], 2],
    [["wiki", "write", "a", "b", "--file", "c"], 2],
    [["wiki", "write", "a", "--file", join(outside, "nowhere")], 2],
    [["wiki", "frobnicate"], 2],
    [["wiki", "list", "--limit", "many"], 2],
  ];
  const codes = await Promise.all(wrong.map(async ([args]) => (await io(args)).code));
  expect(codes).toEqual(wrong.map(([, code]) => code));
  expect(await io(["wiki", "search", "--help"])).toMatchObject({ code: 0, stdout: expect.stringContaining("--limit") });
  expect((await runIo(["wiki", "list"], temporaryHome())).code).toBe(4);
});
