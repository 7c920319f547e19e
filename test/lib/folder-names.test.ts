import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFolderNames } from "../../src/lib/folder-names.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

test("a listing is current, however quickly the folder changes", async () => {
  const folder = temporaryFolder();
  const namesIn = createFolderNames();
  expect(await namesIn(join(folder, "none"))).toEqual([]);
  for (let count = 1; count <= 200; count += 1) {
    writeFileSync(join(folder, String(count)), "");
    expect(await namesIn(folder)).toHaveLength(count);
  }
  rmSync(join(folder, "7"));
  expect(await namesIn(folder)).not.toContain("7");
});

test("a listing is cached until the folder changes or is replaced", async () => {
  const folder = join(temporaryFolder(), "one");
  mkdirSync(folder);
  writeFileSync(join(folder, "a"), "");
  const namesIn = createFolderNames();
  let kept = await namesIn(folder);
  await until("the list to be kept", async () => {
    const again = await namesIn(folder);
    const isSame = again === kept;
    kept = again;
    return isSame;
  });
  renameSync(folder, `${folder}.old`);
  expect(await namesIn(folder)).toEqual([]);
  mkdirSync(folder);
  expect(await namesIn(folder)).toEqual([]);
  writeFileSync(join(folder, "b"), "");
  // Setting mtime back still changes ctime.
  utimesSync(folder, new Date(0), new Date(0));
  expect(await namesIn(folder)).toEqual(["b"]);
  rmSync(folder, { recursive: true });
  symlinkSync(`${folder}.old`, folder);
  expect(await namesIn(folder)).toEqual(["a"]);
});
