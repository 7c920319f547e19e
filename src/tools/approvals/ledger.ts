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
  /** Takes secrets out of what is shown. */
  clean: (text: string) => string;
  expiresMs: () => number;
  now: () => Date;
  /** Told of each end once it is on disk. */
  onEnd: (record: ApprovalRecord) => void;
}

const ONCE = { scope: "once" as const, rule: "this call, and no other" };

/** How questions are written down and ended, each with its news in the same transaction. */
export function createLedger({ store, emit, clean, expiresMs, now, onEnd }: LedgerDeps) {
  const table = createApprovalTable(store);

  const tell = (type: "approval.asked" | "approval.decided", record: ApprovalRecord) => {
    const { conversation } = record;
    emit({ type, ...(conversation !== null && !isForAll(record) && { conversation }), data: shown(record) });
  };

  /** Ends one that waits, with what belongs to it; false if it has ended before. */
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
    /** Ends what was not decided in time. */
    expire(): void {
      for (const id of table.overdue(now().toISOString())) end(id, { state: "expired" });
    },
  };
}

/** An approval as others see it. */
export function shown({ seq: _seq, hash: _hash, project: _project, used: _used, ...approval }: ApprovalRecord): Approval {
  return approval;
}
