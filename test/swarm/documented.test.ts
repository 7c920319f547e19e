import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/paths.ts";
import { FRONTEND_WORDS } from "../../src/swarm/pipeline/conditions.ts";

test("the words that make a task a frontend task are documented, all of them and no others", () => {
  const text = readFileSync(join(packageRoot, "docs", "swarm.md"), "utf8");
  const [, list = ""] = /^## Frontend tasks\n[\s\S]*?\n\n(`[\s\S]*?)\n\n/m.exec(text) ?? [];
  expect([...list.matchAll(/`([^`]+)`/g)].map(([, word]) => word)).toEqual([...FRONTEND_WORDS]);
});
