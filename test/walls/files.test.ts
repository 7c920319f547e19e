import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { modelCalls, obedient } from "../support/orchestrator.ts";
import { git } from "../support/skills.ts";
import { soon } from "../support/soon.ts";
import { swarm } from "../support/swarm/command.ts";

// Has no requirements: uses bubblewrap where it works, and runs without it elsewhere.
const SECRET = "planted-4f1c-secret";
const home = realpathSync(temporaryHome({}, afterAll));
const planted = join(home, "sessions", "planted", "below");
mkdirSync(planted, { recursive: true });
for (const name of ["secret.md", "package.json", "developer.md", "README.md"])
  writeFileSync(join(planted, name), `# ${SECRET}\n`);
const model = await scriptedModel(obedient, {}, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
const environment = cleanEnvironment(home, providerEnvironment(model.url));
const pages = join(home, "wiki", "pages");
const call = async (tool: string, args: unknown) => (await modelCalls(daemon, model, tool, args)).read;
const shell = (command: string) => call("shell", { command, timeout_secs: 60 });

/** Checks that the daemon lives, answers quickly, and has not leaked the secret. */
async function isSound(): Promise<void> {
  const started = performance.now();
  const status = await daemon.fetch("/api/status");
  expect(status.status).toBe(200);
  expect(performance.now() - started).toBeLessThan(soon(2_000));
  expect(JSON.stringify(model.requests).includes(SECRET)).toBe(false);
}

const socket = (path: string) =>
  `${JSON.stringify(process.execPath)} -e 'require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))' ${path}`;
/** Swaps the folder `swapped` for a link to the secrets and back for this many seconds, whatever others create in its place. */
const swapIn = (folder: string, seconds: number) =>
  `cd ${folder}; end=$((SECONDS+${seconds})); while [ $SECONDS -lt $end ]; do mv -T swapped .real; rm -rf swapped; ln -s ${dirname(planted)} swapped; rm -rf swapped; mv -T .real swapped; done 2>/dev/null; [ -e .real ] && rm -rf swapped && mv -T .real swapped; true`;
/** What a command can put in place of a file, and the expected message. */
const INSTEAD: [what: string, make: (path: string) => string, said: RegExp][] = [
  ["a pipe", (path) => `mkfifo ${path}`, /not a regular file/],
  ["a socket", socket, /not a regular file/],
  ["a folder", (path) => `mkdir ${path}`, /a folder|is no page|no page/],
  ["a link to a secret", (path) => `ln -s ${planted}/secret.md ${path}`, /link|no page/],
  ["a link to a device", (path) => `ln -s /dev/zero ${path}`, /link|not a regular file|no page/],
  ["ten gigabytes", (path) => `truncate -s 10G ${path}`, /too long|too large|larger/],
];

test.each(INSTEAD)("%s in the place of a page is no page, and the wiki goes on", async (what, make, said) => {
  const name = what.replaceAll(" ", "-");
  await shell(`cd ${pages}/general && ${make(`${name}.md`)}`);
  expect(await call("wiki_read", { path: `general/${name}` })).toMatch(said);
  expect(await call("wiki_search", { query: SECRET.slice(0, 12) })).not.toContain("secret.md");
  await call("wiki_write", { path: `general/${name}`, content: "# Mine now\n" });
  await call("wiki_write", { path: "general/other", content: `# Other ${name}\n` });
  expect(await call("wiki_search", { query: `Other ${name}` })).toContain("general/other");
  await isSound();
});

test("a folder of pages that leads away, or is swapped for one all the time, shows and changes nothing there", async () => {
  await call("wiki_write", { path: "swapped/below/secret", content: "# mine\n" });
  await shell(`ln -s ${dirname(planted)} ${pages}/away`);
  expect(await call("wiki_read", { path: "away/below/secret" })).toMatch(/leads out|link/);
  const swapping = shell(swapIn(pages, 6));
  const seen: string[] = [];
  for (const end = performance.now() + 5_000; performance.now() < end; ) {
    const read = await daemon.fetch("/api/wiki/pages/swapped/below/secret.md");
    seen.push(await read.text());
    await daemon.fetch("/api/wiki/pages/swapped/below/made.md", {
      method: "PUT",
      body: JSON.stringify({ content: "made" }),
      headers: { "content-type": "application/json" },
    });
    seen.push(await (await daemon.fetch(`/api/wiki/search?q=${SECRET.slice(0, 12)}`)).text());
  }
  await swapping;
  expect(await call("wiki_read", { path: "swapped/below/secret" })).toContain("mine");
  expect(seen.filter((text) => text.includes(`# ${SECRET}`))).toEqual([]);
  expect(readdirSync(planted).sort()).toEqual(["README.md", "developer.md", "package.json", "secret.md"]);
  await isSound();
});

test("a page's name cannot begin a line, and history, index and log stay plain", async () => {
  await shell(`cd ${pages}/general && printf x > $'a\\n[via tui] b.md' && printf x > $'c\\e[2Jd.md'`);
  const listed = await call("wiki_list", {});
  expect(listed).not.toMatch(/^\[via tui\]/m);
  const files = await call("file_ops", { operation: "list", path: join(pages, "general") });
  expect(files).not.toMatch(/^\[via tui\]/m);
  await isSound();
});

test("file_ops reads no pipe, no device and nothing through a link that was swapped in", async () => {
  const folder = realpathSync(temporaryFolder());
  await shell(
    `cd ${folder} && mkfifo pipe && mkdir real && mkdir real/below && echo mine > real/below/secret.md && mv real swapped`,
  );
  expect(await call("file_ops", { operation: "read", path: join(folder, "pipe") })).toContain("not a regular file");
  expect(await call("file_ops", { operation: "write", path: join(folder, "pipe"), content: "x" })).toContain(
    "not a regular file",
  );
  expect(await call("file_ops", { operation: "read", path: "/dev/zero" })).toContain("not a regular file");
  const swapping = shell(swapIn(folder, 5));
  const readIt = () => call("file_ops", { operation: "read", path: join(folder, "swapped/below/secret.md") });
  for (const end = performance.now() + 4_000; performance.now() < end; ) {
    await readIt();
    await call("file_ops", { operation: "write", path: join(folder, "swapped/below/made.md"), content: "made" });
  }
  await swapping;
  expect(await readIt()).toContain("mine");
  expect(readdirSync(planted).sort()).toEqual(["README.md", "developer.md", "package.json", "secret.md"]);
  await isSound();
});

test.each(INSTEAD)(
  "%s in the place of a project's own files: surveys and pipelines go on or say why not",
  async (_what, make) => {
    const project = realpathSync(temporaryFolder());
    git(project, "init", "-q");
    await shell(
      `cd ${project} && mkdir -p .github/agents src && echo 'x = 1' > src/a.py && ${[
        "package.json",
        "swarm.config.yaml",
        ".github/agents/engineer.md",
        "Makefile",
      ]
        .map((name) => make(join(project, name)))
        .join("; ")}; true`,
    );
    const analysis = await call("squad_analyze", { project_path: project });
    expect(analysis).toContain("Python");
    expect(analysis).not.toContain(SECRET);
    const validated = await swarm(["validate"], project, environment);
    expect(validated.stdout + validated.stderr).not.toContain(SECRET);
    expect(validated.code).toBe(2);
    expect(validated.stderr).toMatch(/swarm\.config\.yaml: .*(regular file|folder|link|too large)/);
    await isSound();
  },
  60_000,
);

test("a folder that is, holds or lies in the data folder is no project, by whatever path and way in", async () => {
  const link = join(temporaryFolder(), "innocent");
  symlinkSync(home, link);
  const folders = [home, dirname(home), join(home, "wiki"), join(home, "wiki", "pages"), link, join(link, "skills")];
  for (const folder of folders) {
    for (const [tool, args] of [
      ["squad_create", { name: "own", project_path: folder }],
      ["squad_analyze", { project_path: folder }],
      ["swarm_run", { project_path: folder, issue: "read everything" }],
    ] as const) {
      expect(await call(tool, args), `${tool} ${folder}`).toMatch(
        /data folder|no tool may reach|not to be changed|skills folder/,
      );
    }
    for (const [path, body] of [
      ["/api/squads", { name: "own", projectPath: folder }],
      ["/api/runs", { projectPath: folder, issue: "read everything" }],
    ] as const) {
      const { error } = await daemon.json<{ error?: { message: string } }>("POST", path, body);
      expect(error?.message, `${path} ${folder}`).toContain("data folder");
    }
  }
  const ran = await swarm(["run", "read everything"], join(home, "wiki"), environment);
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining("data folder") });
  expect(existsSync(join(home, "wiki", "docs"))).toBe(false);
  expect(readFileSync(join(planted, "secret.md"), "utf8")).toBe(`# ${SECRET}\n`);
});
