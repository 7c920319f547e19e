import { expect, test } from "vitest";
import { cleanEnvironment, IO, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

test("a terminal that can do nothing gets plain lines, without a single escape", { timeout: 60_000 }, async () => {
  const model = await scriptedModel(() => ({ say: "Good day." }));
  const home = temporaryHome();
  await startDaemonProcess(home, providerEnvironment(model.url));
  const terminal = await openTerminal(home, [process.execPath, IO], { ...cleanEnvironment(home), TERM: "dumb" });
  await terminal.sees(/API at http[\s\S]*\n>/, 30_000);
  await terminal.enter("hello");
  await terminal.sees("Good day.");
  await terminal.enter("/quit");
  await until("the end", async () => !(await terminal.isOpen()));
  expect(terminal.bytes()).not.toContain("\u001b");
});
