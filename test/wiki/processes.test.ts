import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { killed } from "../support/processes.ts";
import { makeWiki, until } from "../support/wiki.ts";

/** Starts a writer, optionally preloading a module. */
function startWriter(args: string[], before?: string): { child: ChildProcess; said: () => string } {
  const script = join(packageRoot, "test/support/wiki-writer.ts");
  const imports = ["--import", "tsx", ...(before ? ["--import", before] : [])];
  const child = spawn(process.execPath, [...imports, script, ...args], {
    cwd: packageRoot,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  return { child, said: () => text };
}

function expectComplete(text: string): void {
  const [, letter, times] = /^# (\w) (\d+)\n/.exec(text) ?? [];
  expect(text).toBe(`# ${letter} ${times}\n${letter?.repeat(200_000)}\nend of ${letter} ${times}\n`);
}

test("two processes writing the same page leave a complete page, and every replaced text is a version", async () => {
  const { wiki, root } = makeWiki();
  const writers = ["a", "b"].map((letter) => startWriter([root, "general/shared", letter, "20"]));
  const done = Promise.all(writers.map(({ child }) => once(child, "exit")));
  let seen = 0;
  const file = join(root, "pages/general/shared.md");
  let over = false;
  void done.then(() => {
    over = true;
  });
  while (!over) {
    if (existsSync(file)) {
      expectComplete(readFileSync(file, "utf8"));
      seen += 1;
    }
    await new Promise((next) => setTimeout(next, 2));
  }
  expect(await done).toEqual([
    [0, null],
    [0, null],
  ]);
  expect(seen).toBeGreaterThan(0);
  expectComplete(wiki.read("general/shared").content);
  const texts = [
    wiki.read("general/shared").content,
    ...wiki.history("general/shared").map(({ version }) => wiki.readVersion("general/shared", version)),
  ];
  for (const text of texts) expectComplete(text);
  expect(new Set(texts).size).toBe(40);
  expect((await wiki.search("END OF")).items.map((hit) => hit.path)).toEqual(["pages/general/shared.md"]);
  expect(readdirSync(join(root, "pages/general"))).toEqual(["shared.md"]);
});

test("a writer killed between write and rename leaves the old page intact, and its temporary file is removed", async () => {
  const { wiki, root, reopen } = makeWiki();
  wiki.write("general/page", "# Old\nall of it");
  await wiki.settled();
  // Block the writer's rename forever, as if the machine had stopped there.
  const hold = join(root, "..", "hold.mjs");
  const held = `import fs from "node:fs";\nimport { syncBuiltinESMExports } from "node:module";
fs.renameSync = () => { fs.writeSync(1, "held\\n"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); };\nsyncBuiltinESMExports();\n`;
  writeFileSync(hold, held);
  const { child, said } = startWriter([root, "general/page", "z", "1"], hold);
  await until("the writer stands between write and rename", () => said().includes("held"));
  await killed(child);

  const names = readdirSync(join(root, "pages/general"));
  const leftover = names.find((name) => name.endsWith(".tmp"));
  expect(leftover).toBeDefined();
  expect(wiki.read("general/page").content).toBe("# Old\nall of it");
  expect((await wiki.search("end of z")).items).toEqual([]);
  expect((await wiki.list()).items.map((page) => page.path)).toEqual(["pages/general/page.md"]);
  wiki.write("general/page", "# New\nafter the kill");
  expect(wiki.read("general/page").content).toBe("# New\nafter the kill");

  utimesSync(join(root, "pages/general", leftover!), new Date(0), new Date(0));
  await reopen();
  await until("the leftover to go", () => readdirSync(join(root, "pages/general")).length === 1);
  expect(readdirSync(join(root, "pages/general"))).toEqual(["page.md"]);
});

test("a writer killed at any moment leaves a complete page that search finds", async () => {
  const { wiki, root } = makeWiki();
  for (let round = 0; round < 4; round += 1) {
    const { child, said } = startWriter([root, "general/killed", "k", "100000"]);
    await until("it writes", () => said().includes(`\n${3 + round * 5}\n`));
    await killed(child);
    const { content } = wiki.read("general/killed");
    expectComplete(content);
    const last = /end of k \d+/.exec(content)?.[0] ?? "";
    expect((await wiki.search(last)).items[0]?.path).toBe("pages/general/killed.md");
    for (const { version } of wiki.history("general/killed")) expectComplete(wiki.readVersion("general/killed", version));
  }
});
