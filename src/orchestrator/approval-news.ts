import type { Log } from "../lib/log.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Source } from "../protocol/messages.ts";
import type { Squads } from "../squads/squads.ts";
import type { Hub } from "../store/hub.ts";
import { whenFree } from "../store/open.ts";
import type { Askers } from "./askers.ts";
import type { Outbox } from "./outbox.ts";

export interface ApprovalNewsDeps {
  hub: Pick<Hub, "subscribe">;
  outbox: Pick<Outbox, "owe" | "received">;
  approvals: { waiting(): Approval[] };
  askers: Askers;
  squads: Pick<Squads, "task">;
  log: Pick<Log, "error">;
  now?: () => number;
}

export const approvalKey = (id: string) => `approval:${id}`;
export const reminderKey = (id: string) => `reminder:${id}`;

/** A question is repeated when this part of its time is left. */
const LAST_PART = 1 / 3;
/** Longer waits are split, because timers are limited and clocks may be adjusted. */
const LONGEST_WAIT_MS = 60_000;

/** Sends every question to the conversation that asked for the work, and a reminder before it expires. */
export function createApprovalNews(deps: ApprovalNewsDeps) {
  const { hub, outbox, approvals, askers, squads, log, now = Date.now } = deps;
  let timer: NodeJS.Timeout | undefined;
  let isOpen = false;

  function askerOf({ owner }: Approval): Source | undefined {
    if (owner.kind === "message") return askers.ofMessage(owner.id);
    if (owner.kind === "schedule") return askers.ofSchedule(owner.id);
    if (owner.kind === "run") return askers.ofRun(owner.id);
    return squads.task(owner.id).origin?.source;
  }

  /** The outbox key makes repeated calls count once. */
  function sendQuestion(approval: Approval, kind: "approval" | "reminder"): void {
    const { id, conversation } = approval;
    const source = conversation === null ? undefined : askerOf(approval);
    if (conversation === null || source === undefined) return;
    const key = kind === "reminder" ? reminderKey(id) : approvalKey(id);
    outbox.owe({ kind, about: id, conversation, source, text: null, key });
  }

  /** Sends due reminders and schedules the next check. The outbox key makes each reminder count once, even across restarts. */
  function remind(): void {
    clearTimeout(timer);
    if (!isOpen) return;
    const times = approvals.waiting().map((approval) => ({ approval, at: remindAt(approval) }));
    for (const { approval, at } of times) if (at <= now()) sendQuestion(approval, "reminder");
    const next = Math.min(...times.map(({ at }) => at).filter((at) => at > now()));
    if (Number.isFinite(next))
      timer = setTimeout(() => whenWritable(remind), Math.min(next - now(), LONGEST_WAIT_MS) + 1).unref();
  }

  const whenWritable = (work: () => void) =>
    void whenFree(work).catch((error: unknown) => log.error("a question could not be passed on", { error }));

  return {
    start(): void {
      isOpen = true;
      hub.subscribe((event) => {
        if (event.type === "approval.asked") {
          whenWritable(() => sendQuestion(event.data, "approval"));
          whenWritable(remind);
        } else if (event.type === "approval.decided") {
          whenWritable(() => outbox.received(approvalKey(event.data.id)));
          whenWritable(() => outbox.received(reminderKey(event.data.id)));
        }
      });
      for (const approval of approvals.waiting()) sendQuestion(approval, "approval");
      whenWritable(remind);
    },
    close(): void {
      isOpen = false;
      clearTimeout(timer);
    },
  };
}

function remindAt({ createdAt, expiresAt }: Approval): number {
  const [from, to] = [Date.parse(createdAt), Date.parse(expiresAt)];
  return to - (to - from) * LAST_PART;
}
