import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Squad } from "../../src/protocol/squads.ts";
import { cleanEnvironment, IO, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { skillFile, writeFiles } from "../support/skills.ts";
import { soon } from "../support/soon.ts";
import { ended, project } from "../support/squads.ts";
import { until } from "../support/until.ts";

describe("a newcomer without any model", { timeout: 60_000 }, () => {
  const { atTheEnd, end } = collectEndings();
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startDaemonProcess(temporaryHome({}, atTheEnd), { IO_ENGINE: "rehearsal" }, atTheEnd);
  });
  afterAll(async () => {
    await daemon.kill("SIGTERM");
    await end();
  });
  const say = async (text: string, conversation = "main") => (await daemon.ask({ text, conversation })).reply ?? "";
  /** Runs `io send` in a folder. */
  const sendFrom = (folder: string, text: string) =>
    new Promise<string>((done) => {
      const child = spawn(process.execPath, [IO, "send", text], { cwd: folder, env: cleanEnvironment(daemon.home) });
      let output = "";
      child.stdout.on("data", (chunk) => {
        output += chunk;
      });
      child.once("close", () => done(output));
    });

  test("can form a squad, delegate to it and hear of the result with its evidence", async () => {
    const folder = project();
    const name = basename(folder);
    const formed = await say(`Form a squad for ${folder}`);
    expect(formed).toContain("Hannibal, Lead Architect");
    const slug = /The squad (\S+) is formed/.exec(formed)?.[1];
    expect(slug).toBe(name.toLowerCase());
    const asked = await daemon.ask({ text: `Ask the ${slug} squad to run \`touch rehearsed\`` });
    expect(asked.route).toMatchObject({ answered: "delegated", tasks: [expect.stringMatching(/^t_/)] });
    const task = await ended(daemon, asked.route.tasks[0]!);
    expect(task).toMatchObject({ status: "done", evidence: { filesChanged: ["rehearsed"] } });
    expect(task.result).toContain("exit code: 0");
    expect(existsSync(join(folder, "rehearsed"))).toBe(true);
    const told = await until("the result to be told", async () => {
      const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
      return items.find(({ source, status }) => source.channel === "background" && status === "done");
    });
    expect(told.reply).toContain(`about ${task.id}`);
    expect(told.reply).toMatch(/What IO itself saw:[\s\S]*rehearsed/);
    expect(await say(`Form a squad for ${folder}`)).toMatch(/has a squad already, \S+\.\n\nAgents:\n- Hannibal/);
  });

  test("is told what a tool really answered: what was refused is not said to be done", async () => {
    const refused = await say("form a squad for /no/such/folder");
    expect(refused).toContain("That was not done");
    expect(refused).toContain("/no/such/folder: there is no such folder");
    expect(refused).not.toContain("formed");
    const nobody = await say("ask the nobody squad to run `ls`");
    expect(nobody).toMatch(/That was not done[\s\S]*There is no squad called "nobody"/);
    expect(await say(`run the pipeline on ${daemon.home}: add farewell`)).toMatch(/That was not done[\s\S]*data folder/);
    expect(await say("use the missing skill")).toMatch(/That was not done[\s\S]*No single skill that is on goes by this name/);
  });

  test("forms a squad where they stand, also in a folder with spaces and letters that are no slug", async () => {
    const folder = join(project(), "Café 🚀 app");
    mkdirSync(folder);
    const formed = await sendFrom(folder, "form a squad here");
    expect(formed).toMatch(/The squad cafe-app is formed/);
    const { items } = await daemon.json<{ items: Squad[] }>("GET", "/api/squads");
    expect(items.find(({ slug }) => slug === "cafe-app")).toMatchObject({ projectPath: folder });
    expect(await sendFrom(folder, "run `pwd`")).toContain(folder);
  });

  test("has two things remembered as two, whatever letters they are made of", async () => {
    const things = [
      "my cat is called Ada",
      "my dog is called Bob",
      "🎉🎊",
      "🎉🥳",
      "first line\nsecond line",
      "a".repeat(90),
      `${"a".repeat(89)}b`,
    ];
    for (const thing of things) expect(await say(`remember that ${thing}`)).toContain("I wrote that down");
    expect(await say("what do you know about my cat?")).toContain("my cat is called Ada");
    expect(await say("what do you know about my dog?")).toContain("my dog is called Bob");
    expect(await say("recall 🎉🎊")).toContain("🎉🎊");
    expect(await say("recall second line")).toContain("second line");
    const { items } = await daemon.json<{ items: unknown[] }>("GET", "/api/wiki/pages");
    expect(items).toHaveLength(things.length);
  });

  test("is answered whatever they say, and at once", async () => {
    const odd = [
      "👩‍👩‍👧‍👦",
      "\ud83d half of a pair",
      "$1 $result $&",
      "form a squad for",
      `form a squad for ${"a".repeat(100_000)} b`,
      "farewell".repeat(12_000),
      "remember",
      "\u0007\u001b[2J",
      "use the skill",
      "run the pipeline here:",
    ];
    for (const [index, text] of odd.entries()) {
      const started = performance.now();
      const message = await daemon.ask({ text, conversation: `odd-${index}` });
      expect([text.slice(0, 40), message.error, message.reply?.includes("rehearsal model")]).toEqual([
        text.slice(0, 40),
        null,
        true,
      ]);
      expect(performance.now() - started).toBeLessThan(soon(20_000));
    }
  });

  test("sees a skill used: it is read, and the command that it names is run", async () => {
    const text = `${skillFile("report", "How to tell the state of a project.")}\nRun \`ls -1\` and read what it says.\n`;
    writeFiles(join(daemon.home, "skills", "report"), { "SKILL.md": text });
    expect((await runIo(["skill", "enable", "report", "--yes"], daemon.home)).code).toBe(0);
    const used = await sendFrom(project({ "only-file.txt": "" }), "use the report skill");
    expect(used).toMatch(/The skill report says to run `ls -1`, so I did[\s\S]*only-file\.txt/);
  });

  test("starts a run of the pipeline from the chat and hears how it ended", { timeout: 120_000 }, async () => {
    const folder = project({ "README.md": "# Nothing to do with the sample\n" });
    const begun = await sendFrom(folder, "run the pipeline here: paint the door");
    const id = /Run (r_\w+) has begun/.exec(begun)?.[1];
    const run = await until(
      "the run to end",
      async () => {
        const found = await daemon.json<Run>("GET", `/api/runs/${id}`);
        return found.finishedAt === null ? undefined : found;
      },
      90_000,
    );
    expect(run).toMatchObject({ projectPath: folder, issue: "paint the door" });
    expect(run.outcome).not.toBe("approved");
    await until("the news of it", async () => {
      const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
      return items.find(({ reply }) => reply?.startsWith("News of a run:") && reply.includes(id!));
    });
  });
});
