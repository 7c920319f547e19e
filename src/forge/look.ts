import { createHash } from "node:crypto";
import type { PullRow } from "../store/pulls.ts";
import type { NewTrigger, WatchRow } from "../store/watches.ts";
import type { Forge, Issue, Pull } from "./port.ts";
import { isOwn } from "./text.ts";

/** What the looks of one process remember of a repository. */
export interface LookMemory {
  /** By the number of an issue or pull request: its last change, and how often it was looked at since. */
  items: Map<number, { updatedAt: string; looks: number }>;
}
export const newMemory = (): LookMemory => ({ items: new Map() });

export interface LookDeps {
  watch: Pick<WatchRow, "since" | "label" | "mention" | "reviews" | "checks">;
  forge: Forge;
  /** IO's pull requests in this repository that are not merged. */
  pulls: readonly PullRow[];
  memory: LookMemory;
  /** What may set work going. */
  see: (trigger: NewTrigger) => void;
  /** Told how a pull request of IO's is at the forge. */
  onPull: (row: PullRow, pull: Pull) => void;
  /** Told what somebody with write rights, or a check, said of a pull request of IO's; more than once, too. */
  onWord: (row: PullRow, word: PullWord) => void;
}

/** Something that was said of a pull request, and under which name it is the same as before. */
export interface PullWord {
  kind: "review" | "check";
  by: string;
  text: string;
  key: string;
}

/** Several things can happen within the second that a forge tells, so a change is looked at twice. */
const LOOKS = 2;
/** Forges list some changes late. */
const OVERLAP_MS = 60_000;
const MOST_TEXT = 20_000;

/** Looks at what changed in a repository, and writes down what may set work going. Answers with where the next look begins. */
export async function lookAtRepository(deps: LookDeps): Promise<{ since: string | null; saw: string }> {
  const { watch, forge, pulls, memory } = deps;
  const canWrite = createPermissions(forge);
  const changed = await forge.changedSince(watch.since ?? undefined);
  let looked = 0;
  for (const item of changed) {
    const known = memory.items.get(item.number);
    const isSame = known?.updatedAt === item.updatedAt;
    if (isSame && known.looks >= LOOKS) continue;
    looked += 1;
    const own = pulls.find(({ number }) => number === item.number);
    if (own) await lookAtPull(deps, own, canWrite);
    else if (item.isOpen && !item.isPull) await lookAtIssue(deps, item, canWrite);
    memory.items.set(item.number, { updatedAt: item.updatedAt, looks: isSame ? known.looks + 1 : 1 });
  }
  const open = pulls.filter(({ state }) => state !== "closed");
  // A commit that is still on its way is not known there.
  const pushed = pulls.filter(({ state }) => state === "open" || state === "waiting");
  for (const own of pushed) await lookAtChecks(deps, own);
  const newest = changed.map(({ updatedAt }) => Date.parse(updatedAt)).reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const since = Number.isFinite(newest) ? `${new Date(newest - OVERLAP_MS).toISOString().slice(0, 19)}Z` : watch.since;
  const count = (many: number, what: string) => `${many} ${what}${many === 1 ? "" : "s"}`;
  return { since, saw: `${count(looked, "change")}, ${count(open.length, "open pull request")} of IO's` };
}

/** Whether somebody may push there, asked once a look. */
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

/** Whether a text calls somebody: `@io` does, `@iodine` and `me@io` do not. */
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
    // Who put it there last answers for it.
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

/** What people wrote on a pull request of IO's. */
export async function lookAtPull(deps: LookDeps, row: PullRow, canWrite: CanWrite): Promise<void> {
  const { watch, forge, see, onPull, onWord } = deps;
  const number = row.number ?? 0;
  const [pull, reviews, threads, comments] = await Promise.all([
    forge.pull(number),
    forge.reviews(number),
    forge.threads(number),
    forge.comments(number),
  ]);
  onPull(row, pull);
  if (pull.state !== "open") return;
  for (const { id, author, verdict, at } of reviews)
    if (verdict === "approved" && isRecent(at) && (await canWrite(author)))
      onWord(row, { kind: "review", by: author, text: verdict, key: `review:${id}:${verdict}` });
  const found: (NewTrigger & { at: string })[] = [
    ...reviews
      .filter(({ verdict }) => verdict === "changes requested" || verdict === "commented")
      .map(({ id, body, author, at }) => ({ kind: "review" as const, externalId: id, by: author, detail: { text: body }, at })),
    ...threads.map(({ id, body, author, path, line, replyTo, url, updatedAt: at }) => ({
      ...{ kind: "thread" as const, externalId: id, by: author, at },
      detail: { text: body, path, line, replyTo, url },
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

/** What is older is no news, though a first look or one after a long pause finds it. */
const NEWS_MS = 7 * 24 * 3_600_000;
const isRecent = (at: string): boolean => !(Date.now() - Date.parse(at) > NEWS_MS);

/** The checks of what IO pushed last, once all of them have come to an end. */
async function lookAtChecks({ watch, forge, see, onWord }: LookDeps, row: PullRow): Promise<void> {
  if (row.commit === null || row.number === null) return;
  const checks = await forge.checks(row.commit);
  if (checks.some(({ state }) => state === "running")) return;
  for (const { id, name, url } of checks.filter(({ state }) => state === "failed")) {
    onWord(row, { kind: "check", by: "", text: name, key: `check:${id}:${row.commit}` });
    const seen = { kind: "check" as const, number: row.number, externalId: id, version: row.commit, by: "" };
    if (watch.checks) see({ ...seen, detail: { text: name, url } });
  }
}
