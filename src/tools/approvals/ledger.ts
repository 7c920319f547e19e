import { missing } from "../../lib/errors.ts";
import { visible } from "../../lib/visible.ts";
import { isForAll } from "../../protocol/approval-text.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { Emit } from "../../protocol/events.ts";
import { type ApprovalEnd, type ApprovalRecord, createApprovalTable } from "../../store/approvals.ts";
import type { Store } from "../../store/open.ts";
import { type Asked, ownerOf, shortId } from "./asked.ts";

export interface LedgerDeps {
  store: Store;
  emit: Emit;
  /** Redacts what is shown. */
  clean: (text: string) => string;
  expiresMs: () => number;
  now: () => Date;
  /** Called for each approval that ended, once this is on disk. */
  onEnd: (record: ApprovalRecord) => void;
}

const ONCE = { scope: "once" as const, rule: "this call, and no other" };

/** Records questions and how they end, each with its event in the same transaction. */
export function createLedger({ store, emit, clean, expiresMs, now, onEnd }: LedgerDeps) {
  const table = createApprovalTable(store);

  const tell = (type: "approval.asked" | "approval.decided", record: ApprovalRecord) => {
    const { conversation } = record;
    emit({ type, ...(conversation !== null && !isForAll(record) && { conversation }), data: shown(record) });
  };

  /** Ends a waiting question and runs `also` in the same transaction; false if it had ended before. */
  function end(id: string, how: Omit<ApprovalEnd, "at">, also: () => void = () => {}): boolean {
    const ended = store.transaction(() => {
      if (!table.end(id, { ...how, at: now().toISOString() })) return undefined;
      also();
      const record = table.find(id)!;
      tell("approval.decided", record);
      return record;
    });
    if (ended) onEnd(ended);
    return ended !== undefined;
  }

  return {
    table,
    end,
    /** On disk when this returns. */
    insert(asked: Asked, hash: string): ApprovalRecord {
      const createdAt = now();
      const text = (value: string | undefined) => (value === undefined ? null : visible(clean(value)));
      const { kind, owner, actor, tool, project = null, treeHash = null, scopes = [], withinMs = Infinity } = asked;
      return store.transaction(() => {
        const record = table.insert({
          id: shortId((id) => table.find(id) !== undefined),
          ...{ kind, owner: ownerOf(owner), actor, tool, hash, project, treeHash },
          summary: visible(clean(asked.summary)),
          ...{ command: text(asked.command), path: text(asked.path), diff: text(asked.diff), cwd: text(asked.cwd) },
          ...{ reason: text(asked.reason), rule: text(asked.rule) },
          scopes: [ONCE, ...scopes],
          createdAt: createdAt.toISOString(),
          expiresAt: new Date(createdAt.getTime() + Math.min(expiresMs(), withinMs)).toISOString(),
        });
        tell("approval.asked", record);
        return record;
      });
    },
    known(given: string): ApprovalRecord {
      const record = table.find(given.trim().toLowerCase());
      if (!record) throw missing(`There is no approval "${given.slice(0, 40)}". "io approval list" shows what waits.`);
      return record;
    },
    /** Expires what was not decided in time. */
    expire(): void {
      for (const id of table.overdue(now().toISOString())) end(id, { state: "expired" });
    },
  };
}

/** An approval without its internal fields. */
export function shown({ seq: _seq, hash: _hash, project: _project, used: _used, ...approval }: ApprovalRecord): Approval {
  return approval;
}
