import { describe, expect, test } from "vitest";
import { silenceOf } from "../../bench/silence.ts";
import { readSmallYaml, readYaml } from "../../src/lib/yaml.ts";
import type { YamlRead } from "../../src/lib/yaml-parse.ts";
import { soon } from "../support/soon.ts";
import { yamlBombs } from "../support/yaml-bombs.ts";

describe.each(Object.entries(yamlBombs(8_000)))("a small text of %s", (_, text) => {
  test("is parsed or refused quickly", () => {
    const before = process.cpuUsage();
    const read = readSmallYaml(text);
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(soon(200));
    if ("problems" in read) expect(read.problems[0]!.message).not.toBe("");
  });
});

test.each(Object.entries(yamlBombs(250_000)))("a large text of %s does not block the event loop", async (_, text) => {
  let read: YamlRead | undefined;
  const { own } = await silenceOf(async () => {
    read = await readYaml(text);
  });
  expect("problems" in read! || read!.lines.size > 0).toBe(true);
  expect(own).toBeLessThan(soon(100));
});

test("valid YAML is parsed with the line of each value, on the main thread or in a worker", async () => {
  const small = "agents:\n  pm: builtin:pm\npipeline:\n  - phase: spec\n    agent: pm\n";
  const large = `${small}notes:\n${Array.from({ length: 2_000 }, (_, index) => `  - note ${index}\n`).join("")}`;
  for (const text of [small, large]) {
    const read = await readYaml(text);
    if ("problems" in read) throw new Error(JSON.stringify(read.problems));
    expect(read.value).toMatchObject({ agents: { pm: "builtin:pm" }, pipeline: [{ phase: "spec", agent: "pm" }] });
    expect(read.lines.get('["pipeline","0","agent"]')).toBe(5);
    expect(read.lines.get('["agents","pm"]')).toBe(2);
  }
});

test("errors are reported with their line, on the main thread or in a worker", async () => {
  const wrong = "a: 1\nb: [1\n";
  expect(await readYaml(wrong)).toMatchObject({ problems: [{ message: expect.stringContaining("is not valid YAML") }] });
  const long = await readYaml(`${"- 1\n".repeat(2_000)}${wrong}`);
  expect("problems" in long && long.problems[0]).toMatchObject({
    line: 2001,
    message: expect.stringContaining("is not valid YAML"),
  });
  expect(readSmallYaml("x".repeat(20_000))).toEqual({
    problems: [{ line: 1, message: expect.stringContaining("too long or too tangled") }],
  });
});
