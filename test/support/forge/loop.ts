import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import type { Act } from "../../../src/engine/rehearsal/wire.ts";
import type { PullRequest } from "../../../src/protocol/pulls.ts";
import type { Watch } from "../../../src/protocol/watches.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../daemon.ts";
import { type AtTheEnd, temporaryHome } from "../home.ts";
import { scriptedModel } from "../model.ts";
import { play, type Script, type Told } from "../swarm/index.ts";
import { until } from "../until.ts";
import { gitHubDialect } from "./github.ts";
import { startForge, TOKEN } from "./server.ts";
import type { ForgeRepo } from "./state.ts";
import { now, openIssue, projectAt, setLabel, triggerOf } from "./watched.ts";

export const GREET_TEST = 'test("greets", () => {\n  expect(greet()).toBe("hello");\n});\n';

/** A watched repository with a pull request that was made from its issue. */
export interface Proposed {
  name: string;
  project: string;
  repo: ForgeRepo;
  watch: string;
  run: string;
  number: number;
  branch: string;
  head: () => string;
}

export interface LoopOptions {
  config?: object;
  /** Overrides what the roles do, except for the engineer's rounds on a pull request. */
  script?: Script;
}

/** Starts a daemon that watches repositories on a fake GitHub, and a model whose engineer does what the test says. */
export async function startLoop(atTheEnd: AtTheEnd, { config = {}, script }: LoopOptions = {}) {
  const double = await startForge(gitHubDialect(), atTheEnd);
  let engineer: (told: Told) => Act = () => ({ say: "C1: not done - no" });
  // The engineer's session contains its earlier questions, so a question that follows from a round continues it.
  const isRound = ({ role, request }: Told) =>
    role === "engineer" && JSON.stringify(request.messages).includes("Your work is proposed as pull request");
  const model: ModelServer = await scriptedModel(
    play((told) => (isRound(told) ? engineer(told) : script?.(told))),
    undefined,
    atTheEnd,
  );
  const home = temporaryHome({ mode: "full", github: { apiUrl: double.apiUrl, pollMs: 1_000 }, ...config }, atTheEnd);
  const env = () => ({ ...providerEnvironment(model.url), GH_TOKEN: TOKEN });
  const start = () => startDaemonProcess(home, env(), atTheEnd);
  let daemon = await start();
  let ids = 40_000;
  const nextId = () => {
    ids += 1;
    return ids;
  };
  /** The files in the daemon's folder that contain a text, each with up to 300 characters that precede it. */
  const filesWith = (text: string) =>
    readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile() && !each.parentPath.includes("runtime"))
      .flatMap(({ parentPath, name }) => {
        const content = readFileSync(join(parentPath, name), "latin1");
        const at = content.indexOf(text);
        return at < 0 ? [] : [`${name}: ${content.slice(Math.max(0, at - 300), at)}`];
      });
  const touch = (repo: ForgeRepo, number: number) => {
    [...repo.pulls, ...repo.issues].find((each) => each.number === number)!.at = now();
  };

  const become = (watch: string, what: string, fits: Parameters<typeof triggerOf>[2]) =>
    triggerOf(() => daemon, watch, fits, what);

  return {
    ...{ double, model, home, env, touch, nextId, become, filesWith },
    daemon: (): TestDaemon => daemon,
    /** Sets what the engineer does when it is asked to continue on a pull request. */
    setEngineer(next: typeof engineer): void {
      engineer = next;
    },
    async proposed(
      name: string,
      more: object = {},
      files: Record<string, string> = { "spec/greet.test.ts": GREET_TEST },
    ): Promise<Proposed> {
      const project = projectAt(double, name, atTheEnd, files);
      const repo = double.repos[name]!;
      setLabel(repo, openIssue(repo, "Greet people"), "mona");
      const wanted = { project, label: "io", reviews: true, checks: true, ...more };
      const { id: watch } = await daemon.json<Watch>("POST", "/api/watches", wanted);
      const { run } = await become(watch, "the pull request", ({ state }) => state === "done");
      const { number, branch } = await daemon.json<PullRequest>("GET", `/api/pulls/${run}`);
      const head = () => double.headOf(name, branch!)!;
      return { name, project, repo, watch, run: run!, number: number!, branch: branch!, head };
    },
    /** Kills the daemon before or after the forge handles a certain request, then starts it again. */
    async killedAt(
      what: RegExp,
      moment: "before" | "after",
      { act, nth = 1 }: { act: () => unknown; nth?: number },
    ): Promise<void> {
      let isHeld = false;
      let count = 0;
      double.intercept = async (each, when) => {
        if (!what.test(each) || when !== moment || isHeld) return undefined;
        count += 1;
        if (count < nth) return undefined;
        isHeld = true;
        await daemon.kill("SIGKILL");
        return "lose";
      };
      await act();
      await until("the kill", () => isHeld && daemon.child.signalCode !== null, 180_000);
      double.intercept = () => undefined;
      daemon = await start();
    },
    /** Kills the daemon, runs `act` while it is down, then starts it again. */
    async restarted(act: () => unknown): Promise<void> {
      await daemon.kill("SIGKILL");
      await act();
      daemon = await start();
    },
    checks: ({ repo }: Proposed) => repo.checks,
    /** Adds a comment on a line of a pull request. */
    thread({ repo, number }: Proposed, by: string, body: string, path = "T1.txt"): number {
      const id = nextId();
      repo.threads.push({ id, pull: number, review: 1, by, body, path, line: 1, at: now() });
      touch(repo, number);
      return id;
    },
    comment({ repo, number }: Pick<Proposed, "repo" | "number">, by: string, body: string): number {
      const id = nextId();
      repo.comments.push({ id, issue: number, by, body, at: now() });
      touch(repo, number);
      return id;
    },
    review({ repo, number, head }: Proposed, by: string, state: "approved" | "changes" | "comment", body: string): void {
      repo.reviews.push({ id: nextId(), pull: number, by, state, body, commit: head(), at: now() });
      touch(repo, number);
    },
    failCheck({ repo, head }: Proposed, name: string, log = "", conclusion = "failure"): void {
      repo.checks.push({ id: nextId(), commit: head(), name, status: "completed", conclusion, log });
    },
    /** The comments on an issue or pull request. */
    said: ({ repo, number }: Pick<Proposed, "repo" | "number">) =>
      repo.comments.filter((each) => each.issue === number).map(({ body }) => body),
    answersTo: ({ repo }: Proposed, id: number) => repo.threads.filter(({ replyTo }) => replyTo === id).map(({ body }) => body),
    /** How many requests to the model have these words in their last message. */
    asked: (words: string) => model.requests.filter(({ messages }) => JSON.stringify(messages.at(-1)).includes(words)).length,
    /** Waits until a watch has polled its repository this many times more. Returns that number. */
    async looks(watch: string, times = 1): Promise<number> {
      const lookedAt = async () => (await daemon.json<Watch>("GET", `/api/watches/${watch}`)).lookedAt;
      for (let time = 0; time < times; time += 1) {
        const before = await lookedAt();
        await until("another look", async () => (await lookedAt()) !== before, 60_000);
      }
      return times;
    },
    /** Waits until clients have received this news. */
    async told(text: string): Promise<void> {
      const { of, leave } = await daemon.follow({ lastEventId: "0" });
      await until(`the news "${text}"`, () => of("news.told").some(({ body }) => body.text === text), 60_000);
      leave();
    },
  };
}
export type Loop = Awaited<ReturnType<typeof startLoop>>;
