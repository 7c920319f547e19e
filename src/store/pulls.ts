import { z } from "zod";
import { PullRequest } from "../protocol/pulls.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** A pull request with the user's request. */
export interface PullRow extends Omit<PullRequest, "draft"> {
  /** Null if not given: then it depends on how the work ended. */
  draft: boolean | null;
  wantedBase: string | null;
  /** 0 for the project of the run or task, else the number of another project that the same work changed. */
  part: number;
  /** How often it was requested: an answer to an earlier question does not count for a later one. */
  round: number;
}

/** One request that changes something at a forge; `unknown`: the answer was lost. */
export interface ForgeRequest {
  seq: number;
  action: string;
  detail: string;
  state: "begun" | "done" | "failed" | "unknown";
  result: string | null;
}

type Row = Record<string, string | number | null>;

/** Pull requests, and every modifying request to a forge. */
export function createPullRows(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare(`INSERT INTO pulls (id, owner_kind, owner_id, state, project_path, draft, wanted_base, labels,
    created_at, updated_at) VALUES (:id, :kind, :owner, :state, :projectPath, :draft, :base, :labels, :at, :at)`);
  const byId = db.prepare("SELECT * FROM pulls WHERE id = ?");
  const byOwner = db.prepare("SELECT * FROM pulls WHERE owner_id = ?");
  const together = db.prepare("SELECT * FROM pulls WHERE owner_id = :owner OR owner_id GLOB :owner || '~*' ORDER BY seq");
  const list = db.prepare(
    "SELECT * FROM pulls WHERE seq < coalesce((SELECT seq FROM pulls WHERE id = :before), 9e15) ORDER BY seq DESC LIMIT :limit",
  );
  const underWay = db.prepare("SELECT * FROM pulls WHERE state IN ('planned','waiting','publishing') ORDER BY seq");
  const knownAt = db.prepare(
    "SELECT * FROM pulls WHERE host = ? AND repo = ? AND state <> 'merged' AND number IS NOT NULL ORDER BY seq",
  );
  const followed = db.prepare(
    "SELECT * FROM pulls WHERE number IS NOT NULL AND (state IN ('open','waiting') OR (state = 'closed' AND updated_at > ?)) ORDER BY seq",
  );
  const update = db.prepare(`UPDATE pulls SET state = :state, reason = :reason, forge = :forge, host = :host, repo = :repo,
    branch = :branch, base = :base, commit_id = :commit, number = :number, url = :url, draft = :draft, conflict = :conflict, wanted_base = :wantedBase,
    labels = :labels, approval = :approval, round = :round, updated_at = :at WHERE id = :id`);
  const remove = db.prepare("DELETE FROM pulls WHERE id = ?");
  const begin = db.prepare("INSERT INTO forge_requests (pull, action, detail, state, created_at) VALUES (?, ?, ?, 'begun', ?)");
  const finish = db.prepare("UPDATE forge_requests SET state = ?, result = ?, finished_at = ? WHERE seq = ?");
  const requests = db.prepare("SELECT * FROM forge_requests WHERE pull = ? ORDER BY seq");
  const at = () => now().toISOString();
  const one = (row: unknown): PullRow | undefined => (row === undefined ? undefined : rowOf(row as Row));

  return {
    insert(pull: Pick<PullRow, "id" | "owner" | "part" | "state" | "projectPath" | "draft" | "wantedBase" | "labels">): void {
      const { id, owner, part, state, projectPath, draft, wantedBase, labels } = pull;
      insert.run({
        ...{
          id,
          kind: owner.kind,
          owner: part === 0 ? owner.id : `${owner.id}~${part}`,
          state,
          projectPath,
          base: wantedBase,
          labels: JSON.stringify(labels),
        },
        ...{ draft: draft === null ? null : Number(draft), at: at() },
      });
    },
    find: (id: string): PullRow | undefined => one(byId.get(id)),
    ofOwner: (owner: string): PullRow | undefined => one(byOwner.get(owner)),
    /** All pull requests of one piece of work in merge order; its own project is last. */
    together(owner: string): PullRow[] {
      const all = (together.all({ owner }) as Row[]).map(rowOf);
      return [...all.filter(({ part }) => part > 0).sort((a, b) => a.part - b.part), ...all.filter(({ part }) => part === 0)];
    },
    list: ({ limit, before }: { limit: number; before?: string | undefined }): PullRow[] =>
      (list.all({ limit, before: before ?? null }) as Row[]).map(rowOf),
    /** Pull requests that still need work by IO. */
    underWay: (): PullRow[] => (underWay.all() as Row[]).map(rowOf),
    /** Open pull requests, and those closed since a given time, which may be reopened. */
    followed: (since: Date): PullRow[] => (followed.all(since.toISOString()) as Row[]).map(rowOf),
    /** A repository's unmerged pull requests, including closed ones, which may be reopened. */
    knownAt: (host: string, repo: string): PullRow[] => (knownAt.all(host, repo) as Row[]).map(rowOf),
    change(id: string, change: Partial<PullRow>): PullRow {
      const { draft, labels, ...row } = { ...rowOf(byId.get(id) as Row), ...change };
      update.run({
        ...{ id, state: row.state, reason: row.reason, forge: row.forge, host: row.host, repo: row.repo, branch: row.branch },
        ...{ base: row.base, commit: row.commit, number: row.number, url: row.url, wantedBase: row.wantedBase },
        ...{
          draft: draft === null ? null : Number(draft),
          labels: JSON.stringify(labels),
          conflict: Number(row.conflict),
          approval: row.approval,
          round: row.round,
          at: at(),
        },
      });
      return rowOf(byId.get(id) as Row);
    },
    remove: (id: string) => void remove.run(id),

    /** On disk when this returns, so that the request that follows can be looked up after a crash. */
    beginRequest: (pull: string, action: string, detail: object): number =>
      Number(begin.run(pull, action, JSON.stringify(detail), at()).lastInsertRowid),
    finishRequest: (seq: number, state: Exclude<ForgeRequest["state"], "begun">, result: string | null) =>
      void finish.run(state, result, at(), seq),
    requests: (pull: string): ForgeRequest[] => (requests.all(pull) as Row[]).map((row) => Request.parse(row)),
  };
}
export type PullRows = ReturnType<typeof createPullRows>;

const Request = z.object({
  seq: z.number(),
  action: z.string(),
  detail: z.string(),
  state: z.enum(["begun", "done", "failed", "unknown"]),
  result: z.string().nullable(),
});

/** Parses a row; one of another project is keyed by the run's id and a number. */
function rowOf(row: Row): PullRow {
  const [owner = "", part = "0"] = String(row.owner_id).split("~");
  const read = PullRequest.parse({
    ...row,
    owner: { kind: row.owner_kind, id: owner },
    projectPath: row.project_path,
    commit: row.commit_id,
    draft: row.draft === 1,
    conflict: row.conflict === 1,
    labels: readJson(z.array(z.string()), String(row.labels)) ?? [],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  });
  return {
    ...read,
    draft: row.draft === null ? null : row.draft === 1,
    wantedBase: row.wanted_base === null ? null : String(row.wanted_base),
    round: Number(row.round),
    part: Number(part),
  };
}
