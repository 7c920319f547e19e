import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { z } from "zod";
import { packageRoot } from "../../src/lib/package-root.ts";
import { EVENT_DATA } from "../../src/protocol/events.ts";

const [, ...parts] = readFileSync(join(packageRoot, "docs", "reference", "events.md"), "utf8").split(/^## /m);
const sections = new Map(parts.map((part) => [part.slice(0, part.indexOf("\n")), part]));

test("the reference names every event, and no other", () => {
  expect([...sections.keys()].sort()).toEqual(Object.keys(EVENT_DATA).sort());
});

test.each(Object.entries(EVENT_DATA))(
  "the reference says what %s is about, and names every field of it, and no other",
  (type, schema) => {
    const text = sections.get(type) ?? "";
    expect(text.split("\n")[2]).toMatch(/^[A-Z].+\.$/);
    const listed = [...text.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
    const fields = Object.entries((schema as z.ZodObject).shape).map(([name, field]) => {
      // A field with a default is always present.
      const left = field.safeParse(undefined);
      return left.success && left.data === undefined ? `${name}?` : name;
    });
    expect(listed.sort()).toEqual(fields.sort());
  },
);
