import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { BudgetReport } from "../../src/protocol/budgets.ts";
import type { UsageSummary } from "../../src/protocol/usage.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { counted, usageBy } from "../support/spending.ts";

const begin = async (config: Record<string, unknown> = {}) => {
  const { model, served } = counted(() => ({ say: "Noted." }));
  const server = await scriptedModel(model);
  const home = temporaryHome(config);
  const daemon = await startDaemonProcess(home, providerEnvironment(server.url));
  return { home, daemon, served, io: (...args: string[]) => runIo(args, home, providerEnvironment(server.url)) };
};

test("io usage shows what was used by any group, the sum on top, and says where a price is missing", async () => {
  const { daemon, served, io } = await begin({ prices: { scripted: { input: 1_000, output: 2_000 } } });
  await daemon.ask({ text: "one", conversation: "kitchen" });
  await daemon.ask({ text: "two" });
  const { inputTokens, outputTokens } = served;
  const money = (inputTokens * 1_000 + outputTokens * 2_000) / 1e6;
  const told = await io("usage", "--by", "conversation");
  expect(told.code).toBe(0);
  const lines = told.stdout
    .trim()
    .split("\n")
    .map((line) => line.split(/\s{2,}/));
  expect(lines[0]![0]).toMatch(/^What was used since \d{4}-\d\d-\d\d, by conversation:$/);
  expect(lines[1]).toEqual(["conversation", "calls", "input", "output", "of it cached", "cost"]);
  const shown = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 6 });
  expect(lines[2]).toEqual(["all", "2", shown(inputTokens), shown(outputTokens), "0", shown(money)]);
  expect(
    lines
      .slice(3)
      .map(([name]) => name)
      .sort(),
  ).toEqual(["kitchen", "main"]);

  const document = JSON.parse((await io("usage", "--by", "source", "--since", "7d", "--json")).stdout) as UsageSummary;
  expect(document).toMatchObject({
    by: "source",
    total: { ...served, money, partial: false },
    items: [{ name: "api", calls: 2 }],
  });
  expect(await daemon.json("GET", "/api/usage?by=source&since=7d")).toEqual(document);

  await daemon.json("PATCH", "/api/config", { prices: null });
  expect((await io("usage")).stdout).toMatch(/\* Without scripted: there is no price for it under "prices" in config.json\./);
  expect(await io("usage", "--by", "mood")).toMatchObject({ code: 2 });
  expect(await io("usage", "--since", "tomorrow")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Write 7d, a date"),
  });
});

test("what io doctor asks of the model is counted, though it asks beside the daemon", async () => {
  const { daemon, served, io } = await begin();
  await daemon.ask({ text: "one" });
  expect(JSON.parse((await io("doctor", "--json")).stdout)).toMatchObject({ items: expect.any(Array) });
  const { total, items } = await usageBy(daemon, "agent");
  expect(total).toMatchObject(served);
  expect(items.map(({ name }) => name).sort()).toEqual(["doctor", "orchestrator"]);
});

test("io budget sets, shows and takes away limits, in config.json, and refuses what is none", async () => {
  const { home, daemon, io } = await begin();
  const stored = () => (JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as { budgets?: unknown }).budgets;
  expect((await io("budget", "show")).stdout).toMatch(/^Nothing is limited/);
  expect((await io("budget", "set", "day", "--tokens", "1,000,000", "--calls", "5")).stdout).toMatch(
    /^Limits: day: 1,000,000 tokens, 5 calls\n/,
  );
  await daemon.ask({ text: "one" });
  const { stdout } = await io("budget", "set", "day", "--money", "2.5");
  expect(stored()).toEqual({ day: { tokens: 1_000_000, calls: 5, money: 2.5 } });
  expect(stdout).toMatch(/day \d{4}-\d\d-\d\d +calls +1 +5 +4\n/);
  expect(stdout).toContain('No limit on money holds scripted: there is no price under "prices" in config.json.');
  await io("budget", "set", "run", "--calls", "9");
  expect(JSON.parse((await io("budget", "set", "day", "--off", "--json")).stdout)).toMatchObject({
    limits: { run: { calls: 9 } },
  });
  expect(stored()).toEqual({ run: { calls: 9 } });

  expect(await io("budget", "set", "day")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--tokens, --calls or --money"),
  });
  expect(await io("budget", "set", "week", "--calls", "1")).toMatchObject({ code: 2 });
  expect(await io("budget", "set", "day", "--calls", "0")).toMatchObject({ code: 2 });
  expect(await io("budget", "set", "day", "--calls", "1.5")).toMatchObject({ code: 2 });
  const put = (body: unknown) =>
    daemon.fetch("/api/budgets", { method: "PUT", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  for (const wrong of [{ day: { tokens: -1 } }, { day: { coins: 1 } }, { week: {} }, [], { run: { calls: 1.5 } }])
    expect((await put(wrong)).status).toBe(400);
  expect(stored()).toEqual({ run: { calls: 9 } });
  expect(((await (await put({})).json()) as BudgetReport).limits).toEqual({});
});
