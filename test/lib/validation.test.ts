import { expect, test } from "vitest";
import { z } from "zod";
import { explainIssues } from "../../src/lib/validation.ts";

const explain = (schema: z.ZodType, value: unknown) => explainIssues(schema.safeParse(value).error!);

const cases: [z.ZodType, unknown, string][] = [
  [z.object({ text: z.string() }), {}, "text: is missing"],
  [z.object({ text: z.string() }), { text: 5 }, "text: must be a text"],
  [z.object({ limit: z.coerce.number().int() }), { limit: "x" }, "limit: must be a number"],
  [z.object({ limit: z.number().int() }), { limit: 1.5 }, "limit: must be a whole number"],
  [z.object({ limit: z.number().max(200) }), { limit: 201 }, "limit: must be at most 200"],
  [z.object({ limit: z.number().min(1) }), { limit: 0 }, "limit: must be at least 1"],
  [z.object({ ms: z.number().positive() }), { ms: 0 }, "ms: must be more than 0"],
  [z.object({ name: z.string().min(1) }), { name: "" }, "name: must not be empty"],
  [z.object({ name: z.string().max(3) }), { name: "four" }, "name: must have at most 3 characters"],
  [z.object({ all: z.array(z.string()).max(1) }), { all: ["a", "b"] }, "all: must have at most 1 entries"],
  [z.object({ on: z.boolean() }), { on: "yes" }, "on: must be true or false"],
  [z.object({ tier: z.enum(["high", "low"]) }), { tier: "top" }, 'tier: must be one of "high", "low"'],
  [z.object({ kind: z.literal("a") }), { kind: "b" }, 'kind: must be "a"'],
  [z.object({ at: z.url() }), { at: "nowhere" }, 'at: must be an address such as "https://example.com"'],
  [z.object({ at: z.string().regex(/^a/) }), { at: "b" }, "at: is not written in the form that is wanted"],
  [z.object({ a: z.union([z.string(), z.number()]) }), { a: [] }, "a: must be a text, or must be a number"],
  [
    z.object({ a: z.discriminatedUnion("k", [z.object({ k: z.literal("x") }), z.object({ k: z.literal("y") })]) }),
    { a: { k: "z" } },
    'a.k: must be one of "x", "y"',
  ],
  [z.record(z.string().regex(/^a/), z.string()), { b: "x" }, "b: has a name that is not allowed"],
  [z.strictObject({}), { bogus: 1, more: 2 }, "bogus: there is no such field; more: there is no such field"],
  [z.object({ in: z.strictObject({}) }), { in: { bogus: 1 } }, "in.bogus: there is no such field"],
  [z.object({}), undefined, "is missing"],
  [z.object({ q: z.string().min(1, "Say what to look for.") }), { q: "" }, "q: Say what to look for."],
];

test.each(cases)("the broken rule is described in words, case %#", (schema, value, words) => {
  expect(explain(schema, value)).toBe(words);
});
