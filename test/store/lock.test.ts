import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { pickHolder } from "../../src/store/lock.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram } from "../support/program.ts";

test.runIf(process.platform === "linux")(
  "two homes on different devices with the same lock inode each report their own holder",
  { timeout: 60_000 },
  async () => {
    await ensureProgram("bwrap", "bubblewrap");
    const places = ["a", "b"].map((name) => join(temporaryFolder(), name));
    for (const place of places) mkdirSync(place);
    const script = join(packageRoot, "test/support/lock-holders.ts");
    const mounts = places.flatMap((place) => ["--tmpfs", place]);
    const told = execFileSync(
      "bwrap",
      ["--dev-bind", "/", "/", ...mounts, process.execPath, "--import", "tsx", script, "find", ...places],
      { encoding: "utf8", cwd: packageRoot },
    );
    const found = JSON.parse(told) as { inode: number; isHolder: boolean }[];
    expect(found[0]!.inode).toBe(found[1]!.inode);
    expect(found.map(({ isHolder }) => isHolder)).toEqual([true, true]);
  },
);

const FILE = { dev: 0xfe00, ino: 4_711 };
const line = (pid: number, file: string, more = "POSIX  ADVISORY  WRITE") => `1: ${more} ${pid} ${file} 0 EOF`;
const OURS = 100;

test.each([
  ["another device before ours", [line(99, "00:1b:4711"), line(OURS, "fe:00:4711")], OURS],
  ["another inode that ends in the same digits", [line(99, "fe:00:14711"), line(OURS, "fe:00:4711")], OURS],
  ["a waiting lock", [line(99, "fe:00:4711", "-> POSIX  ADVISORY  WRITE"), line(OURS, "fe:00:4711")], OURS],
  ["a reader", [line(99, "fe:00:4711", "POSIX  ADVISORY  READ "), line(OURS, "fe:00:4711")], OURS],
  ["a device that stat reports differently, as on btrfs and overlay", [line(99, "00:2a:4711"), line(OURS, "00:2b:4711")], OURS],
  ["the same device, but a process that does not have the file open", [line(99, "fe:00:4711"), line(OURS, "00:2b:4711")], OURS],
  ["a holder in another container, whose pid is hidden", [line(0, "fe:00:4711")], undefined],
  ["nobody", [], undefined],
])("the holder of a lock is found in the kernel's list beside %s", (_, lines, holder) => {
  expect(pickHolder(`${lines.join("\n")}\n`, FILE, (pid) => pid === OURS)).toBe(holder);
});

test("if no process can be examined, the device decides", () => {
  const locks = `${line(99, "00:1b:4711")}\n${line(OURS, "fe:00:4711")}\n`;
  expect(pickHolder(locks, FILE, () => undefined)).toBe(OURS);
});
