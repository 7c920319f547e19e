import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../src/lib/package-root.ts";
import { shareOf } from "./support/shares.ts";

const files = readdirSync(`${packageRoot}/test`, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => ({ moduleId: `${packageRoot}/test/${name}` }));

test.each([2, 3])("each test file is in one of %d shares, and every folder is shared out evenly", (count) => {
  const shares = Array.from({ length: count }, (_, at) => shareOf(files, at + 1, count));
  expect(
    shares
      .flat()
      .map(({ moduleId }) => moduleId)
      .sort(),
  ).toEqual(files.map(({ moduleId }) => moduleId).sort());
  for (const folder of new Set(files.map(({ moduleId }) => dirname(moduleId)))) {
    const sizes = shares.map((share) => share.filter(({ moduleId }) => dirname(moduleId) === folder).length);
    // The few long files of a folder are dealt out among those of others.
    expect([folder, Math.max(...sizes) - Math.min(...sizes) <= 3]).toEqual([folder, true]);
  }
});
