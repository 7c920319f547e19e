import { conflict, missing, usageError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Approval, ApprovalDecision, ApprovalState, KeptRule } from "../../protocol/approvals.ts";
import type { Emit } from "../../protocol/events.ts";
import { createRuleTable } from "../../store/approval-rules.ts";
import type { ApprovalRecord } from "../../store/approvals.ts";
import type { Store } from "../../store/open.ts";
import { type Asked, hashOf, ownerOf, shortId } from "./asked.ts";
import { createLedger, shown } from "./ledger.ts";
import { createWaiters } from "./waiters.ts";

export interface ApprovalsDeps {
  store: Store;
  emit: Emit;
  log: Log;
  /** Redacts what is shown. */
  clean: (text: string) => string;
  expiresMs: () => number;
  now?: () => Date;
  /** How often to check whether the time for an answer is over, while somebody waits. */
  everyMs?: number;
}

/** How an approval ended, for whoever asked. `let go`: the asker is gone, and the question stays open until the work ends. */
export interface Verdict {
  state: Exclude<ApprovalState, "waiting"> | "let go";
  approval: Approval;
}

/** Asks people for approval, and keeps questions and decisions across restarts. */
export interface Approvals {
  /**
   * Asks a person and waits for the answer, or takes an unused answer to exactly the same question. The question is on disk
   * before anybody is told. Never rejects because of what a person does.
   */
  ask(asked: Asked): Promise<Verdict>;
  /** Marks an approval as used, so that it allows only one call; to be called in the transaction that starts the call. */
  use(id: string): void;
  /** On disk when this returns. Throws if there is no such approval, or it was decided before. */
  decide(id: string, decision: ApprovalDecision, by: string): Approval;
  /** Withdraws an ended owner's questions, except those that others wait for too. If it is resumed, it asks again. */
  withdraw(ownerId: string): void;
  /** Withdraws one question for everybody who waits for it; does nothing if it has ended. */
  retract(id: string, why: string): void;
  find(id: string): Approval;
  list(filter?: { state?: ApprovalState | undefined; limit?: number; before?: string | undefined }): Approval[];
  waiting(): Approval[];
  waitingCount(): number;
  /** The rules by which people allowed more than one call. */
  rules: { list(): KeptRule[]; forget(id: string): KeptRule; holding(of: RulesFor): KeptRule[] };
  /** Withdraws what nobody needs any more, and from now on expires what is not decided in time. */
  start(): void;
  /** Ends every wait of this process; the questions stay open for the next. */
  letGo(): void;
}

export interface RulesFor {
  /** The message, task or step that calls. */
  owner: string;
  project: string;
  tool: string;
}

const EXPIRY_MS = 1_000;

export function createApprovals(deps: ApprovalsDeps): Approvals {
  const { store, emit, log, clean, expiresMs, now = () => new Date(), everyMs = 200 } = deps;
  const kept = createRuleTable(store);
  const guarded = (work: () => void) => () => {
    try {
      work();
    } catch (error) {
      log.warn("what waits for a person could not be looked at and is looked at again", { error });
    }
  };
  const waiters = createWaiters({
    everyMs,
    look: guarded(() => void expire()),
  });
  const ledger = createLedger({ store, emit, clean, expiresMs, now, onEnd: (record) => waiters.tell(record) });
  const { table, end, insert, known, expire } = ledger;
  /** Approvals answered to a call here that has not begun yet. */
  const taken = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  return {
    async ask(asked) {
      const { attempt = 0, signal } = asked;
      const isShared = asked.key !== undefined;
      const hash = hashOf(asked);
      expire();
      for (const { id, state } of table.elsewhere(hash)) {
        if (taken.has(id) || !waiters.isFree(id, attempt)) continue;
        if (state === "waiting") end(id, { state: "withdrawn", note: "What it was about has been exchanged or changed since." });
        else table.use(id);
      }
      const isFree = ({ id }: ApprovalRecord) => !taken.has(id) && (isShared || waiters.isFree(id, attempt));
      const record = table.standing(hash).find(isFree) ?? insert(asked, hash);
      const ended = record.state === "waiting" ? await waiters.wait(record.id, { attempt, signal, isShared }) : record;
      if (ended === "let go") return { state: "let go", approval: shown(record) };
      if (ended.state === "waiting") throw new Error("an approval that still waits was told as ended");
      // A shared question is asked again after it expired; a call that nobody answered stays denied while its owner works.
      if (ended.state === "expired" && isShared) table.use(ended.id);
      if (ended.state === "allowed" && !isShared) taken.add(ended.id);
      return { state: ended.state, approval: shown(ended) };
    },
    use(id) {
      table.use(id);
      store.afterCommit(() => taken.delete(id));
    },
    decide(given, { decision, scope, note }, by) {
      expire();
      const record = known(given);
      const { id, owner, tool, project } = record;
      const offer = record.scopes.find((each) => each.scope === scope);
      if (decision === "deny" && scope !== "once") throw usageError("A denial is for this call alone: leave the scope out.");
      if (!offer) throw usageError(`This can be allowed for: ${record.scopes.map((each) => each.scope).join(", ")}.`);
      const { match } = offer;
      const state = decision === "allow" ? ("allowed" as const) : ("denied" as const);
      const isDone = end(id, { state, scope, decidedBy: by, note: note && clean(note) }, () => {
        if (scope === "once" || match === undefined) return;
        const place = scope === "task" ? owner.id : (project ?? "");
        kept.add({ id: shortId(kept.has), scope, place, tool, match, approval: id }, now().toISOString());
      });
      if (!isDone) throw conflict(`${id} is ${known(id).state} already.`);
      return shown(known(id));
    },
    withdraw(ownerId) {
      for (const id of table.waitingFor(ownerId)) if (!waiters.isShared(id)) end(id, { state: "withdrawn" });
      table.forgetExpired(ownerId);
      kept.forgetOwner(ownerId);
    },
    retract: (id, why) => void end(id, { state: "withdrawn", note: why }),
    find: (id) => shown(known(id)),
    list: (filter) => table.list(filter).map(shown),
    waiting: () => table.waiting().map(shown),
    waitingCount: table.waitingCount,
    rules: {
      list: kept.list,
      holding: ({ owner, project, tool }) => kept.holding({ ownerId: ownerOf(owner).id, project, tool }),
      forget(id) {
        const gone = kept.forget(id.trim().toLowerCase());
        if (!gone) throw missing(`There is no rule "${id.slice(0, 40)}". "io approval rules" lists them.`);
        return gone;
      },
    },
    start() {
      for (const id of table.orphans()) end(id, { state: "withdrawn" });
      timer = setInterval(guarded(expire), EXPIRY_MS).unref();
    },
    letGo() {
      clearInterval(timer);
      waiters.letGo();
    },
  };
}
