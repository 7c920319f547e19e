import { createHash } from "node:crypto";
import type { PullRow } from "../store/pulls.ts";
import type { NewTrigger, WatchRow } from "../store/watches.ts";
import { ForgeError } from "./client.ts";
import type { Check, Forge, Issue, Pull } from "./port.ts";
import { isOwn } from "./text.ts";

/** What one process remembers of a repository between polls. */
export interface LookMemory {
  /** By issue or pull request number: its state when last listed, and how often it was inspected in that state. */
  items: Map<number, { state: string; looks: number }>;
  /** By pull request number: how many polls in a row found that it cannot be merged. */
  unmergeable: Map<number, number>;
}
export const newMemory = (): LookMemory => ({ items: new Map(), unmergeable: new Map() });

export interface LookDeps {
  watch: Pick<WatchRow, "since" | "label" | "mention" | "reviews">;
  forge: Forge;
  /** IO's unmerged pull requests in this repository. */
  pulls: readonly PullRow[];
  memory: LookMemory;
  /** Records an event that may trigger work. */
  see: (trigger: NewTrigger) => void;
  /** Called with the state of one of IO's pull requests at the forge and, if known, whether it conflicts with its base. */
  onPull: (row: PullRow, pull: Pull, conflict?: boolean) => void;
  /**
   * Called with a remark by somebody with write permission, or with a failed check, on one of IO's pull requests; may repeat
   * itself.
   */
  onWord: (row: PullRow, word: PullWord) => void;
  /** Called with the checks of the commit that IO pushed last. */
  onChecks: (row: PullRow, checks: readonly Check[]) => void;
}

/** A remark on a pull request or a failed check of it. The same one always has the same key. */
export interface PullWord {
  kind: "review" | "check";
  by: string;
  text: string;
  key: string;
}

/** A forge's timestamps are in seconds and several changes may share one, so each change is inspected twice. */
const LOOKS = 2;
/** Forges list some changes late, so polls overlap. */
const OVERLAP_MS = 60_000;
const MOST_TEXT = 20_000;

/** Inspects what changed in a repository and records what may trigger work. Returns where the next poll starts. */
export async function lookAtRepository(deps: LookDeps): Promise<{ since: string | null; saw: string }> {
  const { watch, forge, pulls, memory } = deps;
  const canWrite = createPermissions(forge);
  const changed = await forge.changedSince(watch.since ?? undefined);
  let looked = 0;
  for (const item of changed) {
    const known = memory.items.get(item.number);
    const state = stateOf(item);
    const isSame = known?.state === state && item.updatedAt !== "";
    if (isSame && known.looks >= LOOKS) continue;
    looked += 1;
    const own = pulls.find(({ number }) => number === item.number);
    if (own && !isPushed(own)) await lookAtPull(deps, own, canWrite);
    if (!own && item.isOpen && !item.isPull) await lookAtIssue(deps, item, canWrite);
    memory.items.set(item.number, { state, looks: isSame ? known.looks + 1 : 1 });
  }
  // Some changes to a pull request appear late in the list of changes, or never. GitHub does not count unchanged answers.
  let unread = "";
  for (const own of pulls.filter(isPushed)) {
    await lookAtPull(deps, own, canWrite);
    unread ||= await lookAtChecks(deps, own);
  }
  const open = pulls.filter(({ state }) => state !== "closed");
  const newest = Math.max(...changed.map(({ updatedAt }) => Date.parse(updatedAt)).filter(Number.isFinite));
  const since = Number.isFinite(newest) ? `${new Date(newest - OVERLAP_MS).toISOString().slice(0, 19)}Z` : watch.since;
  const count = (many: number, what: string) => `${many} ${what}${many === 1 ? "" : "s"}`;
  return { since, saw: `${count(looked, "change")}, ${count(open.length, "open pull request")} of IO's${unread}` };
}

const stateOf = ({ updatedAt, isOpen, labels }: Issue) => JSON.stringify([updatedAt, isOpen, labels]);

/** Whether the forge has the row's commit: while a push is under way, it does not. */
const isPushed = ({ state, number }: PullRow) => number !== null && (state === "open" || state === "waiting");

/** Checks whether a user may push to the repository. Asks the forge once per user. */
export function createPermissions(forge: Forge) {
  const known = new Map<string, Promise<boolean>>();
  return (login: string): Promise<boolean> => {
    const asked =
      known.get(login) ??
      (login === ""
        ? Promise.resolve(false)
        : forge.permissionOf(login).then((permission) => permission === "write" || permission === "admin"));
    known.set(login, asked);
    return asked;
  };
}
type CanWrite = ReturnType<typeof createPermissions>;

export const isLabelled = ({ labels }: Pick<Issue, "labels">, label: string): boolean =>
  labels.some((each) => each.toLowerCase() === label.toLowerCase());

/** Whether a text mentions a name: `@io` does, `@iodine` and `me@io` do not. */
export function mentions(text: string, name: string): boolean {
  const wanted = `@${name.replace(/^@/, "")}`.toLowerCase();
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + 1)) {
    const before = lower[at - 1] ?? " ";
    const after = lower[at + wanted.length] ?? " ";
    if (!/[\w`./-]/.test(before) && !/[\w-]/.test(after)) return true;
  }
  return false;
}

const versionOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);
const kept = (text: string) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}\n… cut off` : text);
const asIssue = ({ title, body }: Issue) => kept(`${title}\n\n${body}`.trim());
const noRight = (by: string) => ({ state: "ignored" as const, reason: `${by || "somebody"} has no right to write here` });

async function lookAtIssue({ watch, forge, see }: LookDeps, issue: Issue, canWrite: CanWrite): Promise<void> {
  const { number } = issue;
  const { label, mention } = watch;
  if (label !== null && isLabelled(issue, label)) {
    // The last person who added the label is responsible for it.
    const set = (await forge.labelings(number)).findLast((each) => each.label.toLowerCase() === label.toLowerCase());
    if (set) {
      const refused = (await canWrite(set.by)) ? {} : noRight(set.by);
      see({
        kind: "label",
        number,
        externalId: set.id,
        version: set.at,
        by: set.by,
        detail: { text: asIssue(issue) },
        ...refused,
      });
    }
  }
  if (mention === null) return;
  const texts = [
    { id: `issue-${number}`, body: issue.body, author: issue.author },
    ...(await forge.comments(number)).filter(({ body }) => !isOwn(body)),
  ];
  for (const { id, body, author } of texts.filter((each) => mentions(each.body, mention))) {
    const refused = (await canWrite(author)) ? {} : noRight(author);
    const text = id === `issue-${number}` ? asIssue(issue) : kept(`${asIssue(issue)}\n\nComment of ${author}:\n${body}`);
    see({ kind: "mention", number, externalId: id, version: versionOf(body), by: author, detail: { text }, ...refused });
  }
}

/** Inspects one of IO's pull requests: its state and, if it is open, its reviews, threads and comments. */
export async function lookAtPull(deps: LookDeps, row: PullRow, canWrite: CanWrite): Promise<void> {
  const { watch, forge, memory, see, onPull, onWord } = deps;
  const number = row.number ?? 0;
  const pull = await forge.pull(number).catch((error: unknown) => {
    if (error instanceof ForgeError && error.kind === "missing") return undefined;
    throw error;
  });
  if (!pull) return;
  onPull(row, pull, conflictOf(memory, number, pull));
  if (pull.state !== "open") return;
  const [reviews, threads, comments] = await Promise.all([forge.reviews(number), forge.threads(number), forge.comments(number)]);
  for (const { id, author, verdict, at } of reviews)
    if (verdict === "approved" && isRecent(at) && (await canWrite(author)))
      onWord(row, { kind: "review", by: author, text: verdict, key: `review:${id}:${verdict}` });
  const found: (NewTrigger & { at: string })[] = [
    ...reviews
      .filter(({ verdict }) => verdict === "changes requested" || verdict === "commented")
      .map(({ id, body, author, at }) => ({ kind: "review" as const, externalId: id, by: author, detail: { text: body }, at })),
    ...threads.map(({ id, body, author, path, line, isOnRemoved, replyTo, url, updatedAt: at }) => ({
      ...{ kind: "thread" as const, externalId: id, by: author, at },
      detail: { text: body, path, line: isOnRemoved ? null : line, replyTo, url },
    })),
    ...comments.map(({ id, body, author, url, updatedAt: at }) => ({
      ...{ kind: "comment" as const, externalId: id, by: author, at },
      detail: { text: body, url },
    })),
  ].map((each) => ({
    ...{ ...each, number, version: versionOf(each.detail.text) },
    detail: { ...each.detail, text: kept(each.detail.text) },
  }));
  for (const { at, ...each } of found) {
    if (each.detail.text.trim() === "" || isOwn(each.detail.text)) continue;
    const isHeard = await canWrite(each.by);
    if (isHeard && isRecent(at))
      onWord(row, { kind: "review", by: each.by, text: "", key: `${each.kind}:${each.externalId}:${each.version}` });
    if (watch.reviews) see(isHeard ? each : { ...each, ...noRight(each.by) });
  }
}

/** Older events are not reported as news, although the first poll, or one after a long pause, finds them. */
const NEWS_MS = 7 * 24 * 3_600_000;
const isRecent = (at: string): boolean => !(Date.now() - Date.parse(at) > NEWS_MS);

/** A forge takes time to find out whether a pull request can be merged, and Gitea says no until it knows. */
const LOOKS_TO_BELIEVE = 3;

/** Whether a pull request conflicts with its base; undefined until the forge has said so often enough. */
function conflictOf({ unmergeable }: LookMemory, number: number, { isMergeable }: Pull): boolean | undefined {
  const looks = isMergeable === false ? (unmergeable.get(number) ?? 0) + 1 : 0;
  if (isMergeable !== null) unmergeable.set(number, looks);
  return isMergeable === true || looks >= LOOKS_TO_BELIEVE ? looks > 0 : undefined;
}

/** Returns why the checks cannot be read, if the token may not do so: that keeps nobody from answering reviews. */
async function lookAtChecks({ forge, onWord, onChecks }: LookDeps, row: PullRow): Promise<string> {
  if (row.commit === null || row.number === null) return "";
  const checks = await forge.checks(row.commit).catch((error: unknown) => {
    if (error instanceof ForgeError && error.kind === "forbidden") return error;
    throw error;
  });
  if (checks instanceof ForgeError) return `; their checks cannot be read: ${checks.message}`;
  for (const { id, name } of checks.filter(({ state }) => state === "failed"))
    onWord(row, { kind: "check", by: "", text: name, key: `check:${id}:${row.commit}` });
  onChecks(row, checks);
  return "";
}
