import { computed, type InjectionKey, inject, ref } from "vue";
import type { Approval } from "../../../src/protocol/approvals.ts";
import type { ConversationInfo } from "../../../src/protocol/conversations.ts";
import type { Planning } from "../../../src/protocol/plans.ts";
import type { RunSummary } from "../../../src/protocol/runs.ts";
import type { Task } from "../../../src/protocol/squads.ts";
import { useIo } from "../io.ts";
import { at, get, post, Refused } from "../lib/api.ts";
import { firstLine } from "../lib/format.ts";
import { useLoaded } from "./load.ts";

interface List<T> {
  items: T[];
}
const RECENT_MS = 2 * 86_400_000;
/** Failed runs that were put aside in this browser. */
const ASIDE = "io.aside";

/** What stands around every view: conversations, running work, and what waits for a person. */
export function createShared() {
  const io = useIo();
  const ready = () => io.settled.value;
  const conversations = useLoaded(() => get<List<ConversationInfo>>("/api/conversations?limit=50"), {
    on: ["message.queued", "message.started", "message.finished", "conversation.changed", "conversation.deleted"],
    ready,
  });
  const tasks = useLoaded(() => get<List<Task>>("/api/tasks?status=running&limit=20"), {
    on: ["task.queued", "task.started", "task.finished"],
    ready,
  });
  const runs = useLoaded(() => get<List<RunSummary>>("/api/runs?limit=20"), { on: ["run.started", "run.finished"], ready });
  const plans = useLoaded(() => get<List<Planning>>("/api/plans"), { on: ["plan.changed"], ready });
  const approvals = useLoaded(() => get<List<Approval>>("/api/approvals?state=waiting&limit=200"), {
    on: ["approval.asked", "approval.decided"],
    ready,
  });
  /** Gone before the list says so. */
  const decided = ref(new Set<string>());
  io.on(["approval.decided"], ({ data }) => void decided.value.add(data.id));
  const aside = ref(new Set<string>());
  const readAside = () => new Set((localStorage.getItem(ASIDE) ?? "").split(" "));

  const waiting = computed(() => (approvals.data.value?.items ?? []).filter(({ id }) => !decided.value.has(id)));
  const asking = computed(() => (plans.data.value?.items ?? []).filter(({ status }) => status === "asking"));
  const failed = computed(() => {
    const items = runs.data.value?.items ?? [];
    if (items.length === 0) return [];
    const known = readAside();
    return items.filter(
      ({ id, status, finishedAt, createdAt }) =>
        (status === "failed" || status === "interrupted") &&
        Date.now() - Date.parse(finishedAt ?? createdAt) < RECENT_MS &&
        !aside.value.has(id) &&
        !known.has(id),
    );
  });

  return {
    /** What was typed and may hold secrets: it is kept as long as the page is open, and nowhere else. */
    typed: new Map<string, string>(),
    conversations: computed(() => conversations.data.value?.items ?? []),
    running: computed(() => ({
      tasks: (tasks.data.value?.items ?? []).filter(({ status }) => status === "running"),
      runs: (runs.data.value?.items ?? []).filter(({ status }) => status === "running"),
    })),
    approvals: waiting,
    plans: asking,
    failed,
    /** Whether it is known what waits. */
    isKnown: computed(
      () => approvals.data.value !== undefined && plans.data.value !== undefined && runs.data.value !== undefined,
    ),
    total: computed(() => waiting.value.length + asking.value.length + failed.value.length),
    async decide(id: string, decision: "allow" | "deny", scope: string, note: string): Promise<void> {
      try {
        await post(at("approvals", id), { decision, scope, ...(note !== "" && { note }) });
        decided.value.add(id);
      } catch (error) {
        if (error instanceof Refused && error.status === 409) decided.value.add(id);
        io.complain(error);
      }
    },
    putAside(id: string): void {
      aside.value.add(id);
      localStorage.setItem(ASIDE, [...readAside(), id].slice(-100).join(" "));
    },
    async resume(run: RunSummary): Promise<void> {
      try {
        await post(`${at("runs", run.id)}/resume`);
        io.say(`“${firstLine(run.issue, 60)}” goes on.`);
      } catch (error) {
        io.complain(error);
      }
    },
  };
}
export type Shared = ReturnType<typeof createShared>;

export const SHARED: InjectionKey<Shared> = Symbol("shared");

export function useShared(): Shared {
  const shared = inject(SHARED);
  if (!shared) throw new Error("There is no shell around this.");
  return shared;
}
