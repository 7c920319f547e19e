import type { WatchDetail, WatchTrigger } from "../../../src/protocol/watches.ts";
import type { TestDaemon } from "../daemon.ts";
import { type AtTheEnd, temporaryFolder } from "../home.ts";
import { git, makeProject } from "../swarm/index.ts";
import { until } from "../until.ts";
import type { ForgeDouble } from "./server.ts";
import { type ForgeRepo, nextNumber } from "./state.ts";

/** Creates a project and its repository on a forge. */
export function projectAt(double: ForgeDouble, repo: string, atTheEnd: AtTheEnd, files: Record<string, string> = {}): string {
  const project = makeProject(files, true, temporaryFolder(atTheEnd));
  double.add(repo, project);
  git(project, "remote", "add", "origin", `${double.url}/${repo}.git`);
  return project;
}

export const now = () => new Date().toISOString();

/** Opens an issue. Returns its number. */
export function openIssue(repo: ForgeRepo, title: string, body = "", by = "mona"): number {
  const number = nextNumber(repo);
  repo.issues.push({ number, title, body, by, state: "open", labels: [], at: now() });
  return number;
}

/** Puts a label on an issue, as this person. */
export function setLabel(repo: ForgeRepo, number: number, by: string, label = "io"): void {
  const issue = repo.issues.find((each) => each.number === number)!;
  repo.events.push({ id: 7_000 + repo.events.length, issue: number, label, by, at: now() });
  issue.labels = [...new Set([...issue.labels, label])];
  issue.at = now();
}

/** Waits until a watch has a trigger, made from an issue or pull request, that fits. */
export function triggerOf(
  daemon: () => TestDaemon,
  watch: string,
  fits: (trigger: WatchTrigger) => boolean,
  what = "a trigger",
): Promise<WatchTrigger> {
  return until(what, async () => (await daemon().json<WatchDetail>("GET", `/api/watches/${watch}`)).triggers.find(fits), 180_000);
}
