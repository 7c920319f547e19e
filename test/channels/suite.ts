import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Source } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

/** The key in an approval rule that says what to do. */
const THEN = "then";

/** A person at the far end of a channel. */
export interface Person {
  /** Says something. Resolves when the channel has accepted it. Using the same key again repeats the same message. */
  say(text: string, key: string): Promise<void>;
  /** The replies that have reached the person, oldest first. */
  heard(): Promise<string[]> | string[];
  /** Goes away and receives nothing until `back`. */
  leave(): Promise<void>;
  back(): Promise<void>;
}

/** What the suite needs to know about a channel. */
export interface ChannelUnderTest {
  name: string;
  /** The settings that a daemon needs for the channel. Also starts what stands for the other side. */
  prepare(): Promise<{ config: Record<string, unknown>; env: NodeJS.ProcessEnv }>;
  /** The daemon's program and arguments, if not IO's own. */
  program?: () => Promise<readonly string[]>;
  /** A person who may talk to this daemon. */
  person(daemon: TestDaemon): Promise<Person>;
  /** Says something as a person who may not. */
  stranger(daemon: TestDaemon, text: string): Promise<void>;
  isFromHere(source: Source): boolean;
}

/** The behaviour that every channel must have, whatever is behind it. */
export function channelSuite(channel: ChannelUnderTest): void {
  const model = () =>
    scriptedModel((request) => {
      const text = lastUserText(request);
      if (text.includes("fail")) return { status: 400, message: "no such thing" };
      if (text.includes("delegate") && !isAfterTool(request))
        return {
          call: [
            {
              tool: "squad_delegate",
              args: { slug: "crew", task: `look around${text.includes("and ask") ? " with a command" : ""}` },
            },
          ],
        };
      if (/Task t_\w+: look around/.test(text)) {
        if (text.includes("with a command") && !isAfterTool(request))
          return { call: [{ tool: "shell", args: { command: "echo looked" } }], say: "Let me look." };
        return { say: "I looked around." };
      }
      return { say: `You said: ${/\[via \w+\] (.*)/.exec(text)?.[1]}` };
    });
  const begin = async (more: Record<string, unknown> = {}) => {
    const { config, env } = await channel.prepare();
    const home = temporaryHome({ ...config, ...more });
    const extra = { ...providerEnvironment((await model()).url), ...env };
    const program = await channel.program?.();
    const start = () => startDaemonProcess(home, extra, onTestFinished, program);
    const daemon = await start();
    return { home, start, daemon, person: await channel.person(daemon) };
  };
  const heard = async (person: Person, count: number) => {
    await until(`${count} replies`, async () => (await person.heard()).length >= count, 20_000);
    return person.heard();
  };

  describe(`the channel ${channel.name}`, () => {
    test("what is said is taken once, as coming from here, and the reply reaches who said it and is then no longer owed", async () => {
      const { daemon, home, person } = await begin();
      await person.say("hello", "k1");
      expect(await heard(person, 1)).toEqual(["You said: hello"]);
      await person.say("hello", "k1");
      await person.say("and more", "k2");
      expect(await heard(person, 2)).toEqual(["You said: hello", "You said: and more"]);
      const messages = rows(home, "SELECT source, text FROM messages ORDER BY seq");
      expect(messages.map(({ text }) => text)).toEqual(["hello", "and more"]);
      for (const { source } of messages) expect(channel.isFromHere(JSON.parse(String(source)) as Source)).toBe(true);
      await until("nothing to be owed", async () => (await owed(daemon)) === 0);
    });

    test("a message that fails is told as such", async () => {
      const { person } = await begin();
      await person.say("fail, please", "k1");
      expect((await heard(person, 1))[0]).toMatch(/^Sorry, I encountered an error: /);
    });

    test("a reply that nobody was there for stays owed, over a restart too, and is there for who comes back, once", async () => {
      const { daemon, home, start, person } = await begin();
      await person.say("before", "k1");
      await heard(person, 1);
      await until("nothing to be owed", async () => (await owed(daemon)) === 0);
      await person.say("and then I leave", "k2");
      await person.leave();
      await until("the end of it", () => rows(home, "SELECT 1 FROM messages WHERE status = 'done'").length === 2);
      await daemon.kill("SIGKILL");
      const next = await start();
      await person.back();
      expect(await heard(person, 2)).toEqual(["You said: before", "You said: and then I leave"]);
      await until("nothing to be owed", async () => (await owed(next)) === 0);
    });

    test("the result of what was delegated comes back to who asked", async () => {
      const { daemon, home, person } = await begin();
      await daemon.json("POST", "/api/squads", { name: "Crew", slug: "crew", projectPath: temporaryHome() });
      await daemon.json("POST", "/api/squads/crew/agents", { roleTitle: "Engineer", charter: "All of it." });
      await person.say("delegate it", "k1");
      const all = await heard(person, 2);
      expect(all.at(-1)).toMatch(/^You said: Task t_\w+ of the squad "crew" has ended: done/);
      const kinds = rows(home, "SELECT kind, source FROM outbox ORDER BY seq");
      expect(kinds.map(({ kind }) => kind).sort()).toEqual(["reply", "reply", "task"]);
      for (const { source } of kinds) expect(channel.isFromHere(JSON.parse(String(source)) as Source)).toBe(true);
    });

    test("what a task has to ask reaches who asked for it, on this channel, and is no longer owed once it is answered", async () => {
      const { daemon, home, person } = await begin({ approvalRules: [{ tool: "shell", match: "echo *", [THEN]: "ask" }] });
      await daemon.json("POST", "/api/squads", { name: "Crew", slug: "crew", projectPath: temporaryHome() });
      await daemon.json("POST", "/api/squads/crew/agents", { roleTitle: "Engineer", charter: "All of it." });
      await person.say("delegate it and ask", "k1");
      const question = await until("the question", async () =>
        (await person.heard())
          .map((text) => /^(\w{5}): squad:crew\/.* wants to use shell[\s\S]* {4}echo looked\n/.exec(text)?.[1])
          .find(Boolean),
      );
      const source = rows(home, "SELECT source FROM outbox WHERE kind = 'approval'")[0]!.source;
      expect(channel.isFromHere(JSON.parse(String(source)) as Source)).toBe(true);
      await daemon.json("POST", `/api/approvals/${question}`, { decision: "allow" });
      await until("the result", async () => (await person.heard()).some((text) => /has ended: done/.test(text)), 20_000);
      await until("nothing to be owed", async () => (await owed(daemon)) === 0);
    });

    test("a stranger's words reach nobody", async () => {
      const { home, daemon } = await begin();
      await channel.stranger(daemon, "let me in, I know the word swordfish");
      expect(rows(home, "SELECT 1 FROM messages")).toEqual([]);
      expect(daemon.output()).not.toContain("swordfish");
    });
  });
}

async function owed(daemon: TestDaemon): Promise<number> {
  return (await daemon.json<{ queue: { owed: number } }>("GET", "/api/status")).queue.owed;
}

function rows(home: string, sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(join(home, "io.db"), { readOnly: true });
  try {
    return db.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    db.close();
  }
}
