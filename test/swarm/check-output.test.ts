import { expect, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { createCheckOutput } from "../../src/swarm/checks/check-output.ts";
import { until } from "../support/until.ts";

function listener(secret = "a-secret-of-the-user") {
  const told: string[] = [];
  const output = createCheckOutput((text) => told.push(text), createRedactor([secret]).clean);
  return { ...output, text: () => told.join("") };
}

test("what a check prints is told in whole lines while it runs, without colours, and how it ended", async () => {
  const check = listener();
  check.begin("npm test");
  check.add("\u001b[32mok 1\u001b[0m\nok");
  await until("the first line", () => check.text().includes("ok 1\n"));
  expect(check.text()).toBe("\n▸ $ npm test\nok 1\n");
  check.add(" 2\nhalf a line");
  check.end(3);
  expect(check.text()).toBe("\n▸ $ npm test\nok 1\nok 2\nhalf a line\n✕ exit 3\n");
});

test("a secret that a check prints is told of nobody, also where it comes in two pieces", async () => {
  const check = listener();
  check.begin("echo a-secret-of-the-user");
  check.add("first\nkey: a-secret-");
  await until("the first line", () => check.text().includes("first\n"));
  check.add("of-the-user\n");
  check.end(0);
  expect(check.text()).toBe("\n▸ $ echo [secret]\nfirst\nkey: [secret]\n");
});

test("of a check that prints faster than anybody reads, only the end of each moment is told", () => {
  const check = listener();
  for (let at = 1; at <= 50_000; at += 1) check.add(`line ${at}\n`);
  check.end(null);
  expect(check.text().length).toBeLessThan(10_000);
  expect(check.text()).toMatch(/^…\nline \d+\n/);
  expect(check.text()).toMatch(/line 50000\n✕ it did not come to an end\n$/);
});
