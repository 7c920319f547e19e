import { expect, test } from "vitest";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";

test("without a terminal lines go in and answers come out, plain: echo hello | io", async () => {
  const model = await scriptedModel((request) => ({ say: `**Heard** \u001b[31m${/\] (.*)$/.exec(lastUserText(request))?.[1]}` }));
  const home = temporaryHome();
  await startDaemonProcess(home, providerEnvironment(model.url));
  const { code, stdout, stderr } = await runIo([], home, {}, "hello\n/skills\nand again\n");
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: "No skills are installed.\n**Heard** �[31mhello\n**Heard** �[31mand again\n",
    stderr: "",
  });
  expect(lastUserText(model.requests[0]!)).toContain("[via tui] hello");
});

test("a message that fails without a terminal is told, and makes the exit code", async () => {
  const model = await scriptedModel(() => ({ status: 400, message: "no such thing" }));
  const home = temporaryHome();
  await startDaemonProcess(home, providerEnvironment(model.url));
  const { code, stdout } = await runIo([], home, {}, "hello");
  expect(stdout).toContain("Sorry, I encountered an error:");
  expect(code).toBe(1);
});
