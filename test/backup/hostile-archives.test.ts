import { createHash } from "node:crypto";
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { restore } from "../../src/backup/restore.ts";
import { END_OF_TAR, headerOf, paddingOf, type TarEntry } from "../../src/backup/tar.ts";
import { pathsOf } from "../../src/home/paths.ts";
import { runIo } from "../support/daemon.ts";
import { temporaryFolder } from "../support/home.ts";

type Entry = Partial<TarEntry> & { name: string; body?: string; kind?: string };

const digest = (text: string) => createHash("sha256").update(text).digest("hex");

/** An archive with a matching manifest, so that only its content can be wrong. */
function archive(entries: readonly Entry[], change: (head: Buffer, entry: Entry) => Buffer = (head) => head): Buffer {
  const parts = entries.map((entry) => {
    const { type = "file", mode = 0o600, body = "", target } = entry;
    const size = entry.size ?? (type === "file" ? Buffer.byteLength(body) : 0);
    const head = headerOf({
      name: `io-backup/${entry.name}`,
      type,
      mode,
      mtimeMs: 0,
      size,
      ...(target !== undefined && { target }),
    });
    return Buffer.concat([change(head, entry), Buffer.from(body), paddingOf(Buffer.byteLength(body))]);
  });
  const rows = entries.map(({ name, type, mode = 0o600, body = "", target = "" }) => [
    name,
    { sha256: digest(type === "link" ? target : body), mode: mode & 0o777 },
  ]);
  const manifest = JSON.stringify({
    format: "io-backup/1",
    io: "1",
    createdAt: "2026-01-01",
    home: "/old",
    entries: Object.fromEntries(rows),
  });
  const told = headerOf({
    name: "io-backup/manifest.json",
    type: "file",
    mode: 0o600,
    mtimeMs: 0,
    size: Buffer.byteLength(manifest),
  });
  return gzipSync(Buffer.concat([...parts, told, Buffer.from(manifest), paddingOf(Buffer.byteLength(manifest)), END_OF_TAR]));
}

/** A header with changed bytes and a correct checksum. */
function forged(head: Buffer, at: number, bytes: string): Buffer {
  const copy = Buffer.from(head);
  copy.write(bytes, at, "latin1");
  copy.write(" ".repeat(8), 148);
  const sum = copy.reduce((total, byte) => total + byte, 0);
  copy.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return copy;
}

function ground() {
  const parent = temporaryFolder();
  const outside = join(parent, "outside");
  mkdirSync(outside);
  const home = join(parent, "home");
  const run = (bytes: Buffer, replace = false) => {
    const file = join(parent, "backup.tar.gz");
    writeFileSync(file, bytes);
    return restore({ paths: pathsOf({ IO_HOME: home }), file, replace });
  };
  return { parent, outside, home, run };
}

const config = { name: "config.json", body: "{}" };

test("an archive that would write outside the folder, or is not what IO writes, is refused and leaves nothing", async () => {
  const { parent, outside, home, run } = ground();
  const link = (name: string, target = outside): Entry => ({ name, type: "link", target });
  const cases: Record<string, Buffer> = {
    "a link below a link": archive([config, link("wiki"), link("wiki/evil", "/etc/passwd")]),
    "a link below a link, named first": archive([config, link("wiki/evil", "/etc/passwd"), link("wiki")]),
    "a file below a link": archive([config, link("wiki"), { name: "wiki/evil", body: "x" }]),
    "a folder below a link": archive([config, link("wiki"), { name: "wiki/evil", type: "folder" }]),
    "a file far below a link": archive([config, link("a"), { name: "a/b/c/d", body: "x" }]),
    "a file below a file": archive([config, { name: "config.json/x", body: "x" }]),
    "the same name twice": archive([config, config]),
    "a link and a file of one name": archive([config, link("x"), { name: "x", body: "x" }]),
    "a name that leads up": archive([config, { name: "../outside/evil", body: "x" }]),
    "a long name that leads up": archive([config, { name: `${"a/".repeat(80)}${"../".repeat(82)}outside/evil`, body: "x" }]),
    "a name with a backslash": archive([config, { name: "a\\..\\evil", body: "x" }]),
    "a name of a million letters": archive([config, { name: "a/".repeat(400_000), body: "x" }]),
    "what belongs to a process": archive([config, { name: "daemon.json", body: "{}" }]),
    "a runtime": archive([config, { name: "runtime/1.0.102-linux-x64/copilot-runtime", body: "x", mode: 0o755 }]),
    "compiled code": archive([config, { name: "compiled/x", body: "x" }]),
    "a note of a restore to go on with": archive([config, { name: ".restore/progress.json", body: "{}" }]),
    "a size that is not there": archive([config, { name: "large", size: 2 ** 33 }]),
    "a size of no number": archive([config, { name: "x", size: 2 ** 34 }], (head) =>
      Buffer.from(
        head.toString("latin1").replace(/size=\d+/, (all) => `size=${"9".repeat(all.length - 5)}`),
        "latin1",
      ),
    ),
    "a folder with a body": archive([config, { name: "x", type: "folder", size: 512, body: "y".repeat(512) }]),
  };
  for (const [kind, letter] of Object.entries({
    "a hard link": "1",
    "a device": "3",
    "a block device": "4",
    "a pipe": "6",
    "a sparse file": "S",
    "a global header": "g",
  }))
    cases[kind] = archive([config, { name: "x", kind: letter }], (head, entry) =>
      entry.kind ? forged(head, 156, entry.kind) : head,
    );
  cases["an absolute name"] = archive([config, { name: "x" }], (head, { name }) =>
    name === "x" ? forged(head, 0, `${outside}/evil\0`) : head,
  );
  cases["a header whose sum is wrong"] = archive([config, { name: "x" }], (head, { name }) => {
    if (name === "x") head.write("y", 10);
    return head;
  });
  for (const [name, bytes] of Object.entries(cases)) {
    const refusal = await run(bytes).then(
      () => "restored",
      (error: Error) => error.message,
    );
    expect([name, refusal]).toEqual([name, expect.stringMatching(/Nothing was restored|no room/)]);
    expect([name, readdirSync(outside), readdirSync(parent).sort(), existsSync(home)]).toEqual([
      name,
      [],
      ["backup.tar.gz", "outside"],
      false,
    ]);
  }
});

test("links are restored as links and told, modes lose what gives power, and names that a program could mistake are only names", async () => {
  const { outside, home, run } = ground();
  const made = await run(
    archive([
      config,
      { name: "skills/mine", type: "link", target: outside },
      { name: "wiki/near", type: "link", target: "pages" },
      { name: "tool", body: "x", mode: 0o4755 },
      { name: "constructor", body: "x" },
      { name: "README", body: "a" },
      { name: "readme", body: "b" },
    ]),
  );
  expect(made.linksOutside).toEqual([{ path: "skills/mine", target: outside }]);
  expect(readlinkSync(join(home, "skills", "mine"))).toBe(outside);
  expect(readdirSync(outside)).toEqual([]);
  expect((lstatSync(join(home, "tool")).mode & 0o7777).toString(8)).toBe("755");
  expect((lstatSync(home).mode & 0o777).toString(8)).toBe("700");
  expect([readFileSync(join(home, "constructor"), "utf8"), readFileSync(join(home, "readme"), "utf8")]).toEqual(["x", "b"]);
});

test("the data folder that a restore puts aside is its owner's alone, whatever its mode was", async () => {
  const { home, run } = ground();
  mkdirSync(home);
  writeFileSync(join(home, "token"), "secret");
  chmodSync(home, 0o755);
  const { aside } = await run(archive([config]), true);
  expect(aside).toMatch(/home\.before-/);
  expect((lstatSync(aside!).mode & 0o777).toString(8)).toBe("700");
});

test("io restore says which links lead out of the data folder", async () => {
  const { parent, outside } = ground();
  const file = join(parent, "links.tar.gz");
  writeFileSync(file, archive([config, { name: "wiki", type: "link", target: outside }]));
  const { code, stdout } = await runIo(["restore", file], join(parent, "elsewhere"));
  expect([code, stdout]).toEqual([0, expect.stringContaining(`lead outside of the data folder: wiki -> ${outside}.`)]);
});
