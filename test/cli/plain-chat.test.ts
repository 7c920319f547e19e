import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

test("commands of one's own are said there too, and the help leaves out what needs a terminal", async () => {
  const model = await scriptedModel((request) => ({ say: `Heard ${/\] (.*)$/s.exec(lastUserText(request))?.[1]}` }));
  const home = temporaryHome();
  mkdirSync(join(home, "commands"));
  writeFileSync(join(home, "commands", "greet_all.md"), "---\ndescription: Greets\n---\nSay hello to $ARGUMENTS.\n");
  writeFileSync(join(home, "commands", "status.md"), "Never said.");
  await startDaemonProcess(home, providerEnvironment(model.url));
  const { code, stdout } = await runIo([], home, {}, "/greet_all Ada and Bo\n/help\n/greet_al\n/new\n/status\n");
  expect(code).toBe(0);
  expect(stdout).toContain("Heard Say hello to Ada and Bo.");
  expect(stdout).toContain(`Greets (${join(home, "commands", "greet_all.md")})`);
  expect(stdout).toContain(`not read from ${join(home, "commands", "status.md")}: IO has a command of that name`);
  expect(stdout).toContain("There is no command /greet_al. Did you mean /greet_all?");
  expect(stdout).toContain("/new takes a terminal.");
  expect(stdout).not.toMatch(/^\/(?:new|conversation|copy) .*(?:begins|lists|puts)|Shift\+Tab {2}/m);
  expect(stdout).not.toContain("Never said.");
});

test("a message that fails without a terminal is told, and makes the exit code", async () => {
  const model = await scriptedModel(() => ({ status: 400, message: "no such thing" }));
  const home = temporaryHome();
  await startDaemonProcess(home, providerEnvironment(model.url));
  const { code, stdout } = await runIo([], home, {}, "hello");
  expect(stdout).toContain("Sorry, I encountered an error:");
  expect(code).toBe(1);
});
