import { expect, test } from "vitest";
import { count, openChat } from "../support/chat.ts";
import { digestOf, quietNow, runSchedule, schedule } from "../support/news.ts";
import { until } from "../support/until.ts";

test("the terminal calls for a person by the level of the news: nothing in quiet hours but what is urgent", async () => {
  const { terminal, daemon } = await openChat(
    (said) => (said.includes("break") ? { status: 400, message: "no" } : { say: `Report: ${said}` }),
    { config: { news: { quietHours: quietNow() } } },
  );
  // The person looks elsewhere.
  await terminal.send("\u001b[O");
  const bells = () => count(terminal.bytes(), "\u001b]9;");
  const elsewhere = { conversation: "builds" };
  const watch = await schedule(daemon, "watch builds", elsewhere);
  await runSchedule(daemon, watch.id);
  await until("it to be held back", async () => (await digestOf(daemon)).heldCount === 1);
  const here = await schedule(daemon, "watch here");
  await runSchedule(daemon, here.id);
  await terminal.sees("Report: watch here");
  const broken = await schedule(daemon, "break it", elsewhere);
  await runSchedule(daemon, broken.id);
  await terminal.sees("builds: Sorry, I encountered an error", 60_000);
  expect(bells()).toBe(1);
  expect(await terminal.scrollback()).not.toContain("Report: watch builds");

  await daemon.json("PATCH", "/api/config", { news: {} });
  await runSchedule(daemon, watch.id);
  await terminal.sees("builds: Report: watch builds", 60_000);
  expect(bells()).toBe(2);
});
