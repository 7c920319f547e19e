import { MODE_WORDS, type Mode } from "../home/mode-words.ts";
import type { Status } from "../protocol/api.ts";
import type { ChannelInfo } from "../protocol/channels.ts";
import { formatRunning } from "../protocol/shown-state.ts";
import type { ClusterStatus, Worker } from "../protocol/workers.ts";

/** How to connect a real model, in one sentence. */
export const CONNECT =
  'To connect a real model: run "io setup", or set COPILOT_GITHUB_TOKEN for GitHub Copilot, or COPILOT_PROVIDER_BASE_URL for a provider of your own, or start Ollama; then restart IO.';

/** The engine and its model, how to connect a real one, and the mode. */
export function engineLine({ engine, mode }: Pick<Status, "engine"> & Partial<Pick<Status, "mode">>): string {
  const line = `Engine: ${engine.kind}, ${engine.state}, model ${engine.model}.`;
  const connect = engine.kind === "rehearsal" ? [CONNECT] : [];
  return [line, ...engine.notes, ...connect, ...(mode ? [modeLine(mode)] : [])].join(" ");
}

/** The mode, and how to change it. */
export const modeLine = (mode: Mode): string =>
  `Mode ${mode}: ${MODE_WORDS[mode]} (io config set mode plan, ask, auto or full changes it; in the chat, /mode).`;

/** The version of the Copilot runtime. */
function runtimeLine({ engine: { runtime } }: Pick<Status, "engine">): string {
  if (runtime.version === null) return "Runtime: not started yet";
  const warning = ", which was not tested with this version of IO; io doctor says what to do";
  return `Runtime: Copilot ${runtime.version}${runtime.tested ? "" : warning}`;
}

/** How long records are kept, and when they were last swept. */
function retentionLine({ retention: { limits, lastAt, removed } }: Pick<Status, "retention">): string {
  const days = Object.entries(limits)
    .filter(([name]) => name.endsWith("Days"))
    .map(([name, value]) => `${words(name.slice(0, -"Days".length))} ${value === 0 ? "for ever" : `${value} d`}`);
  const gone = Object.entries(removed).map(([name, count]) => `${count} ${words(name)}`);
  const last = lastAt === null ? "" : `; last looked through ${lastAt.slice(0, 16).replace("T", " ")} UTC`;
  return `Kept: ${days.join(", ")}${last}${gone.length > 0 ? `, removed since the start: ${gone.join(", ")}` : ""}`;
}

const words = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** The daemon's status in a few lines. */
export function describeStatus(status: Status, url: string): string {
  const { queue, counts } = status;
  const {
    done = 0,
    failed = 0,
    cancelled = 0,
    squads = 0,
    tasks = 0,
    tasksRunning = 0,
    tasksQueued = 0,
    approvalsWaiting = 0,
    budgetsWaiting = 0,
    backgroundRunning = 0,
    runsRunning = 0,
    messagesHeld,
    tasksHeld,
    runsHeld,
  } = counts;
  return [
    `IO ${status.version} at ${url}, pid ${status.pid}, up ${span(status.uptime)}`,
    engineLine({ engine: status.engine }),
    ...(status.mode ? [modeLine(status.mode)] : []),
    runtimeLine(status),
    retentionLine(status),
    ...(status.disk?.detail ? [status.disk.detail] : []),
    ...(queue.owed > 0
      ? [`Not delivered yet: ${queue.owed} ${queue.owed === 1 ? "reply or result" : "replies or results"}`]
      : []),
    ...(approvalsWaiting > 0 ? [`Waiting for your decision: ${approvalsWaiting} (io approval list)`] : []),
    ...(budgetsWaiting > 0 ? [`Work stands still because ${formatBudgets(budgetsWaiting)} used up (io budget show)`] : []),
    ...(status.channels ?? []).map(channelLine),
    ...(status.cluster ? clusterLines(status.cluster) : []),
    `Messages: ${formatRunning(queue.running, messagesHeld)}, ${queue.waiting} queued; ${done} done, ${failed} failed, ${cancelled} cancelled`,
    ...(backgroundRunning > 0 ? [`Commands in the background: ${backgroundRunning} (io background list)`] : []),
    `Squads: ${squads}, with ${tasks} tasks: ${formatRunning(tasksRunning, tasksHeld)}, ${tasksQueued} queued`,
    ...(runsRunning > 0 ? [`Swarm runs: ${formatRunning(runsRunning, runsHeld)}`] : []),
  ].join("\n");
}

/** The state of the server for workers, the workers, and the jobs that none serves. */
export function clusterLines(status: ClusterStatus): string[] {
  const counts = new Map<string, number>();
  for (const { pool, served } of status.waiting) if (!served) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  const waiting = [...counts].map(
    ([pool, count]) => `${count === 1 ? "1 job waits" : `${count} jobs wait`} for the pool ${pool}, which no worker serves`,
  );
  return [clusterLine(status), ...status.items.map((each) => `  ${workerLine(each)}`), ...waiting];
}

/** A worker in one line. */
export function workerLine(worker: Worker, now = Date.now()): string {
  const { name, state, labels, capacity, running, version, engine, wall, seenAt } = worker;
  const about = [`IO ${version}`, ...(engine ? [`engine ${engine}`] : []), ...(wall ? [`wall ${wall}`] : [])].join(", ");
  const heard = seenAt === null ? "never heard of" : `heard of ${span(secondsSince(seenAt, now))} ago`;
  return `${name}  ${state}  ${running} of ${capacity}  ${labels.length > 0 ? labels.join(",") : "-"}  ${about}, ${heard}`;
}

const secondsSince = (iso: string, now: number) => Math.max(0, Math.round((now - Date.parse(iso)) / 1000));

function clusterLine({ state, url, detail, workers }: ClusterStatus): string {
  if (state !== "running") return `Cluster: ${state}${detail === null ? "" : `. ${detail}`}`;
  const counts = Object.entries(workers).filter(([, count]) => count > 0);
  const told =
    counts.length === 0 ? "no workers (io worker invite)" : counts.map(([name, count]) => `${count} ${name}`).join(", ");
  return `Cluster: running at ${url}; workers: ${told}`;
}

/** The state of a channel, and since when. */
export function channelLine({ name, state, since, detail }: ChannelInfo): string {
  const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return `${title}: ${state} since ${since.slice(0, 16).replace("T", " ")} UTC${detail === null ? "" : `. ${detail}`}`;
}

const formatBudgets = (count: number) => (count === 1 ? "a budget is" : `${count} budgets are`);

function span(seconds: number): string {
  const parts = [Math.floor(seconds / 86_400), Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60, seconds % 60];
  const units = ["d", "h", "min", "s"];
  const shown = parts.map((part, index) => `${part} ${units[index]}`);
  const first = parts.findIndex((part) => part > 0);
  return (first < 0 ? shown.slice(-1) : shown.slice(first, first + 2)).join(" ");
}
