import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import type { PullRequest } from "../src/protocol/pulls.ts";
import type { Watch, WatchDetail } from "../src/protocol/watches.ts";
import { gitHubDialect } from "../test/support/forge/github.ts";
import { type ForgeDouble, startForge, TOKEN } from "../test/support/forge/server.ts";
import type { ForgeRepo } from "../test/support/forge/state.ts";
import { now, openIssue, projectAt, setLabel } from "../test/support/forge/watched.ts";
import type { AtTheEnd } from "../test/support/home.ts";
import { play, write } from "../test/support/swarm/index.ts";
import { type BenchDaemon, build, describe, judge, median, startBenchDaemon, temporaryFolder } from "./support.ts";

const IDLE = 10;
const BUSY = 2;
const IDLE_POLL_MS = 30_000;
const IDLE_MINUTES = 1;
/** How often somebody comments in a busy repository. */
const COMMENT_MS = 15_000;
const POLL_MS = 2_000;
const ROUNDS = 5;
const MODEL_MS = 2_000;
const CHECK_SECONDS = 3;
const FILES = { Makefile: `test:\n\t@sleep ${CHECK_SECONDS}\n\t@test ! -e broken.txt\n` };

/** Measures how many requests watching costs, and what a review and its round take beside waiting, model and checks. */
export async function run(): Promise<void> {
  build();
  console.log(
    `       ${IDLE + BUSY} repositories are watched for two minutes; meanwhile another daemon works on ${ROUNDS} rounds`,
  );
  // Polling idle repositories leaves the machine idle almost all the time, so both are measured at once.
  const ends = await Promise.allSettled([measured(IDLE_POLL_MS, countRequests), measured(POLL_MS, timeRounds)]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

interface Parts {
  double: ForgeDouble;
  daemon: BenchDaemon;
  atTheEnd: AtTheEnd;
  /** When the model was asked in rounds. */
  asked: number[];
}

async function measured(pollMs: number, measure: (parts: Parts) => Promise<void>): Promise<void> {
  const closers: (() => unknown)[] = [];
  const atTheEnd: AtTheEnd = (close) => void closers.push(close);
  try {
    const folder = temporaryFolder();
    atTheEnd(folder.remove);
    const double = await startForge(gitHubDialect(), atTheEnd);
    const asked: number[] = [];
    let count = 0;
    const model = await startModelServer(
      play(({ role, request, afterTool }) => {
        const isRound = role === "engineer" && JSON.stringify(request.messages).includes("Your work is proposed as pull request");
        if (!isRound) return undefined;
        asked.push(Date.now());
        count += 1;
        const act = afterTool ? { say: "C1: done - louder" } : write("T1.txt", `HELLO ${count}\n`);
        return { ...act, delayMs: MODEL_MS };
      }),
    );
    atTheEnd(() => model.close());
    const home = join(folder.path, "home");
    // The login of gh, in the form that IO reads.
    mkdirSync(join(home, ".config", "gh"), { recursive: true });
    const host = new URL(double.url).host;
    writeFileSync(join(home, ".config", "gh", "hosts.yml"), `"${host}":\n    oauth_token: ${TOKEN}\n`);
    const config = { mode: "full", github: { apiUrl: double.apiUrl, pollMs } };
    const daemon = await startBenchDaemon(model.url, home, config);
    atTheEnd(() => daemon.stop());
    await measure({ double, daemon, atTheEnd, asked });
  } finally {
    for (let close = closers.pop(); close; close = closers.pop()) await close();
  }
}

/** Counts requests that use up the forge's rate limit. GitHub does not count those that it answers with 304. */
async function countRequests({ double, daemon, atTheEnd }: Parts): Promise<void> {
  const names = Array.from({ length: IDLE + BUSY }, (_, at) => `acme/${at < IDLE ? "idle" : "busy"}-${at}`);
  for (const name of names) {
    const project = projectAt(double, name, atTheEnd, FILES);
    openIssue(double.repos[name]!, "Something");
    await post<Watch>(daemon, "/api/watches", { project, label: "io", reviews: true, checks: true });
  }
  // After the second poll nothing is new any more.
  const looks = () => names.map((name) => double.calls.filter(({ what }) => what.endsWith(`/repos/${name}/issues`)).length);
  while (Math.min(...looks()) < 2) await sleep(100);
  await sleep(1_000);
  const before = double.calls.length;
  const end = Date.now() + IDLE_MINUTES * 60_000;
  while (Date.now() < end) {
    for (const name of names.slice(IDLE)) {
      const repo = double.repos[name]!;
      repo.comments.push({ id: 10_000 + repo.comments.length, issue: 1, by: "ted", body: "And another thing", at: now() });
      repo.issues[0]!.at = now();
    }
    await sleep(Math.min(COMMENT_MS, Math.max(0, end - Date.now())));
  }
  const calls = double.calls.slice(before);
  const of = (kind: string) => calls.filter(({ what }) => what.includes(`/acme/${kind}-`));
  const hourly = (all: typeof calls) => (all.length * 60) / IDLE_MINUTES;
  const counted = (all: typeof calls) => all.filter(({ status }) => status !== 304);
  for (const kind of ["idle", "busy"])
    console.log(
      `       ${kind}: ${hourly(of(kind)).toFixed(0)} requests an hour, ${hourly(counted(of(kind))).toFixed(0)} of them counted`,
    );
  judge("counted requests a minute of an idle repository", counted(of("idle")).length / IDLE_MINUTES / IDLE, 1);
}

async function timeRounds({ double, daemon, atTheEnd, asked }: Parts): Promise<void> {
  const project = projectAt(double, "acme/rounds", atTheEnd, FILES);
  const repo = double.repos["acme/rounds"]!;
  setLabel(repo, openIssue(repo, "Greet people"), "mona");
  const wanted = { project, label: "io", reviews: true, maxRounds: 20 };
  const { id } = await post<Watch>(daemon, "/api/watches", wanted);
  const show = async () => (await daemon.get(`/api/watches/${id}`)).body as WatchDetail;
  let run: string | null = null;
  while (run === null) {
    run = (await show()).triggers.find(({ state }) => state === "done")?.run ?? null;
    await sleep(100);
  }
  const { number } = (await daemon.get(`/api/pulls/${run}`)).body as PullRequest;
  const late: number[] = [];
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = asked.length;
    const reviewed = Date.now();
    const thread = review(repo, number!, round);
    while (!repo.threads.some(({ replyTo }) => replyTo === thread)) await sleep(5);
    const [first = 0, ...more] = asked.slice(before);
    late.push(first - reviewed - POLL_MS);
    const outside = (1 + more.length) * MODEL_MS + CHECK_SECONDS * 1_000;
    times.push((Date.now() - first) / outside);
  }
  console.log(`       ${describe("review to request, beyond the poll", late)}`);
  judge("from a review to the model's request beyond the poll's interval, median", median(late), 1_000, " ms");
  judge("a round beside the model's and the checks' time, median", median(times), 1.15, " times");
}

function review(repo: ForgeRepo, pull: number, round: number): number {
  const id = 40_000 + round;
  repo.threads.push({ id, pull, review: 1, by: "ted", body: `Louder, ${round}`, path: "T1.txt", line: 1, at: now() });
  repo.pulls.find((each) => each.number === pull)!.at = now();
  return id;
}

async function post<T>(daemon: BenchDaemon, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" };
  const answer = await fetch(daemon.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}
