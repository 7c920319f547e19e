import type { Git } from "../git/command.ts";
import { conflict } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { PullRow, PullRows } from "../store/pulls.ts";
import { type ForgeFinder, renamed } from "./find.ts";
import { createForgeSteps, isUpToDate, settleEarlier } from "./forge-steps.ts";
import { type OwnedWork, readProposal } from "./proposal.ts";
import type { Pusher } from "./push.ts";
import type { PublishQuestion } from "./question.ts";

export interface PublishDeps {
  rows: PullRows;
  git: Git;
  finder: ForgeFinder;
  pusher: Pusher;
  ask: PublishQuestion;
  /** Redacts secrets in what is sent. */
  clean: (text: string) => string;
  /** Stores a change and emits its event. */
  change: (id: string, change: Partial<PullRow>, also?: () => void) => PullRow;
  log: Log;
}

/**
 * Pushes a branch and opens or updates its pull request. It checks the forge before each step, so it can safely be repeated at
 * any point: what is already done is not done twice.
 */
export function createPublisher({ rows, git, finder, pusher, ask, clean, change, log }: PublishDeps) {
  const { push, propose, label } = createForgeSteps({ rows, pusher });

  const together = ({ id, owner }: PullRow) => rows.together(owner.id).map((each) => ({ ...each, isThis: each.id === id }));

  async function openPlace(projectPath: string, signal: AbortSignal) {
    const place = await finder.placeOf(projectPath);
    const { forge, token } = await finder.open(place, signal);
    return { place, forge, token, repository: await forge.repository() };
  }

  return async function publish(id: string, owned: OwnedWork, signal: AbortSignal): Promise<void> {
    const row = rows.find(id);
    if (!row) return;
    const opening = openPlace(row.projectPath, signal);
    // Runs in parallel; if there is nothing to propose, the forge's answer does not matter.
    opening.catch(() => undefined);
    const read = await readProposal(git, owned, together(row));
    const proposal = { ...read, title: clean(read.title), body: clean(read.body) };
    const { place: found, forge, token, repository } = await opening;
    const place = renamed(found, repository.fullName);
    if (repository.isArchived) throw conflict(`${place.host}/${place.repo} is archived and takes no pull requests.`);
    if (place.headRepo === place.repo && !repository.canPush)
      throw conflict(
        `The token may not push to ${place.host}/${place.repo}. Use one that may, or push to a fork: git remote add origin <fork>.`,
      );
    const base = row.wantedBase ?? repository.defaultBranch;
    const { branch, commit, files } = proposal;
    if (branch === base) throw conflict(`${branch} is the branch that it would go into.`);
    const [owner = ""] = place.headRepo.split("/");
    const existing = row.number === null ? await forge.findPull({ owner, branch }, base) : await forge.pull(row.number);
    const at = { forge: place.kind, host: place.host, repo: place.repo, branch, base };
    const known = existing && { number: existing.number, url: existing.url, draft: existing.isDraft };
    settleEarlier(rows, row, existing, existing?.head.commit);
    if (existing && existing.state !== "open") {
      change(id, { ...at, ...known, state: existing.state, reason: `it is ${existing.state}, so nothing was pushed` });
      return;
    }
    const situation = { row, place, forge, token, proposal, base, signal };
    const isCurrent = existing?.head.commit === commit && isUpToDate(existing.body, proposal.body);
    const hasLabels = row.labels.every((name) => existing?.labels.some((each) => each.toLowerCase() === name.toLowerCase()));
    if (existing && isCurrent && hasLabels) {
      change(id, { ...at, ...known, commit, state: "open", reason: null, approval: null });
      return;
    }
    // The person approved this commit; after a crash, they are not asked again.
    if (row.state !== "publishing" || row.commit !== commit) {
      const outgoing = { ...at, owner: row.owner.id, projectPath: row.projectPath, headRepo: place.headRepo, commit, files };
      const answer = await ask(
        { ...outgoing, round: row.round },
        { signal, onAsked: (approval) => void change(id, { ...at, approval }) },
      );
      if (answer === undefined) return;
      if ("denied" in answer) {
        change(id, { ...at, state: existing ? "open" : "denied", reason: answer.denied, approval: null });
        return;
      }
      change(id, { ...at, state: "publishing", commit, reason: null, approval: null }, answer.use);
    }
    await push(situation);
    const pull = await propose(situation, existing, row.draft ?? !owned.isApproved);
    change(id, { number: pull.number, url: pull.url, draft: pull.isDraft });
    const reason = await label(situation, pull);
    // The other open pull requests of the same work must link to a new one. They are marked in the same transaction, so a crash
    // loses nothing.
    const toName =
      row.number === null ? rows.together(row.owner.id).filter((each) => each.id !== id && each.state === "open") : [];
    change(id, { state: pull.state, reason }, () => {
      for (const each of toName) rows.change(each.id, { state: "publishing" });
    });
    log.info("a pull request is on its forge", { pull: id, repo: `${place.host}/${place.repo}`, number: pull.number });
  };
}
