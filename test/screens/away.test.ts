import { expect, test } from "vitest";
import { count, openChat } from "../support/chat.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { until } from "../support/until.ts";

test("a chat whose daemon is killed for half a minute says so, waits, and misses nothing; the half-typed line stays", {
  timeout: 150_000,
}, async () => {
  const { terminal, daemon, model, home } = await openChat((said) =>
    said.includes("story") ? { stall: "It was a dark" } : { say: `Answer to: ${said}` },
  );
  await terminal.enter("a story");
  await terminal.sees("It was a dark");
  await terminal.type("half a li");
  await daemon.kill("SIGKILL");
  const gone = performance.now();
  await terminal.sees("reconnecting");
  await terminal.sees("waiting for it");
  await terminal.type("ne");
  await terminal.press("Enter");
  await terminal.sees("not sent");
  await until("half a minute", () => performance.now() - gone > 30_000, 40_000);
  model.play((request) => ({
    say: JSON.stringify(request.messages.at(-1)).includes("story") ? "and stormy night." : "Good day.",
  }));
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  expect(second.url).not.toBe(daemon.url);
  await terminal.sees("the daemon is back", 30_000);
  await terminal.sees("and stormy night.", 60_000);
  await terminal.sees("· connected");
  await terminal.sees("› half a line");
  model.play(() => ({ say: "Good day." }));
  await terminal.press("Enter");
  await terminal.sees("Good day.");
  const all = await terminal.scrollback();
  expect(count(all, "and stormy night.")).toBe(1);
  expect(count(all, "› a story")).toBe(1);
});
