import { existsSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Squad, Task } from "../../src/protocol/squads.ts";
import { cleanEnvironment, IO, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder } from "../support/home.ts";
import { processesOn } from "../support/processes.ts";
import { soon } from "../support/soon.ts";
import { git } from "../support/swarm/index.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const items = async <T>(daemon: TestDaemon, path: string) => (await daemon.json<{ items: T[] }>("GET", path)).items;

test("the tour ends with everything that it promised in its store, and with nothing of the person's touched", async () => {
  const [person, place] = [temporaryFolder(), join(temporaryFolder(), "tour")];
  const { code, stdout, stderr } = await runIo(["tour", "--folder", place, "--json"], join(person, "home"), {
    HOME: person,
    IO_MODE: "",
  });
  expect([code, stderr.split("\n").filter((line) => line.startsWith("✓")).length]).toEqual([0, 5]);
  const told = JSON.parse(stdout) as { home: string; project: string; scenes: { name: string; proof: string }[] };
  expect(told.scenes.map(({ name }) => name)).toEqual(["chat", "wiki", "squad", "skill", "swarm"]);
  expect(existsSync(join(person, "home"))).toBe(false);

  const daemon = await startDaemonProcess(told.home, { IO_ENGINE: "rehearsal", IO_MODE: "" });
  // The tour works in the default mode and without any approval.
  expect(await daemon.json("GET", "/api/status")).toMatchObject({ mode: "auto" });
  expect(await items(daemon, "/api/approvals")).toEqual([]);
  expect(await items<Squad>(daemon, "/api/squads")).toMatchObject([{ slug: "greeter", projectPath: told.project }]);
  const [task] = await items<Task>(daemon, "/api/tasks?squad=greeter");
  expect(task).toMatchObject({
    status: "done",
    evidence: {
      lastTest: { command: "node --test test/greet.test.js", exitCode: 0 },
      verdict: expect.stringMatching(/last exited 0/),
    },
  });
  expect(await items(daemon, "/api/wiki/search?q=goodbye%20in%20English")).toHaveLength(1);
  expect(await items(daemon, "/api/skills")).toMatchObject([{ slug: "what-changed", enabled: true }]);
  const messages = await until("every message to be done", async () => {
    const all = await items<Message>(daemon, "/api/messages?limit=100");
    return all.every(({ status }) => status === "done") && all;
  });
  const used = messages.find(({ text }) => text === "use the what-changed skill");
  expect(used).toMatchObject({
    route: { tools: ["skill", "shell"] },
    reply: expect.stringContaining("A greeter, and an acceptance test"),
  });
  const [summary] = await items<Run>(daemon, "/api/runs");
  const run = await daemon.json<Run>("GET", `/api/runs/${summary!.id}`);
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(run.streams.every(({ status }) => status === "done")).toBe(true);
  expect(git(told.project, "show", `${run.branch}:src/farewell.js`)).toContain("export function farewell");
  expect(git(told.project, "status", "--porcelain", "--", "src", "test")).toBe("");

  // No model is named or billed that was not used. Another name appears only where the rehearsal model replaces it.
  const calls = run.steps.filter(({ kind }) => kind === "call");
  expect(calls.length).toBeGreaterThan(4);
  expect(new Set(calls.flatMap(({ model, asked }) => [model, asked]))).toEqual(new Set(["rehearsal"]));
  expect(run.models.length).toBeGreaterThan(1);
  expect(run.models.every(({ model, standsIn }) => model === "rehearsal" && standsIn)).toBe(true);
  expect(run.phases.find(({ name }) => name.startsWith("cross-model-review"))).toMatchObject({ status: "done" });
  expect(task!.model).toBe("rehearsal");
  expect((await items<{ name: string }>(daemon, "/api/usage?by=model&since=all")).map(({ name }) => name)).toEqual(["rehearsal"]);
  await daemon.kill("SIGTERM");
});

test("a folder with something in it is refused, and an interrupted tour leaves neither a process nor a file", async () => {
  const place = temporaryFolder();
  writeFileSync(join(place, "mine"), "");
  expect(await runIo(["tour", "--folder", place], place)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("is not empty"),
  });
  expect(readdirSync(place)).toEqual(["mine"]);

  const [home, temporary] = [temporaryFolder(), temporaryFolder()];
  const command = ["sh", "-c", `"${process.execPath}" "${IO}" tour; echo "exit $?"; sleep 100`];
  const terminal = await openTerminal(home, command, cleanEnvironment(home, { TMPDIR: temporary }));
  await until("the first scene", async () => /Enter goes on/.test(await terminal.screen()), 60_000);
  await terminal.press("Enter");
  await until("the second", async () => /2 of 5[\s\S]*Enter goes on/.test(await terminal.screen()), 60_000);
  await terminal.press("C-c");
  await until("the end", async () => /exit 130/.test(await terminal.screen()));
  await until("nothing to be left", () => readdirSync(temporary).filter((name) => name.startsWith("io-tour-")).length === 0);
  expect(tmpdir()).not.toBe(temporary);
});

test.each(["the very start", "the sample", "the daemon's start", "a scene"])(
  "Ctrl-C during %s ends the tour within seconds, with exit code 130 and nothing left",
  { timeout: 90_000 },
  async (moment) => {
    const [home, temporary] = [temporaryFolder(), temporaryFolder()];
    const command = ["sh", "-c", `"${process.execPath}" "${IO}" tour; echo "exit $?"; sleep 100`];
    const terminal = await openTerminal(home, command, cleanEnvironment(home, { TMPDIR: temporary }));
    const place = () => readdirSync(temporary).find((name) => name.startsWith("io-tour-"));
    const inPlace = (...parts: string[]) => {
      const found = place();
      return found !== undefined && existsSync(join(temporary, found, ...parts));
    };
    const come: Record<string, () => boolean | Promise<boolean>> = {
      "the very start": () => place() !== undefined,
      "the sample": () => inPlace("greeter"),
      "the daemon's start": () => inPlace("home", "logs", "daemon.out"),
      "a scene": async () => (await terminal.screen()).includes("1 of 5"),
    };
    await until(moment, come[moment]!, 60_000);
    const data = join(realpathSync(temporary), place()!, "home");
    const pressed = performance.now();
    await terminal.press("C-c");
    await until("the end", async () => (await terminal.screen()).includes("exit 130"), 20_000);
    // The tour promises 5 s; a busy machine gets slightly more.
    expect(performance.now() - pressed).toBeLessThan(soon(5_000));
    expect(place()).toBeUndefined();
    await until("every process to be gone", () => processesOn(data).length === 0);
  },
);
