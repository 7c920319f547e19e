import { computed, type InjectionKey, inject, onScopeDispose, ref } from "vue";
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
  next?: string;
}
const FIRST_TALKS = 50;
const RECENT_MS = 2 * 86_400_000;
/** The storage key of the failed runs that the user dismissed in this browser. */
const ASIDE = "io.aside";

/** The data around every view: conversations, running work, and what waits for the user. */
export function createShared() {
  const io = useIo();
  const ready = () => io.settled.value;
  /** How many pages of conversations are shown: there may be hundreds, which few ever want to see. */
  const pages = ref(1);
  const conversations = useLoaded(
    async () => {
      const items: ConversationInfo[] = [];
      let next: string | undefined;
      for (let page = 0; page < pages.value; page += 1) {
        const size = page === 0 ? FIRST_TALKS : 200;
        const before = next === undefined ? "" : `&before=${encodeURIComponent(next)}`;
        const answer = await get<List<ConversationInfo>>(`/api/conversations?limit=${size}${before}`);
        items.push(...answer.items);
        next = answer.next;
        if (next === undefined) break;
      }
      return { items, next };
    },
    { on: ["message.queued", "message.started", "message.finished", "conversation.changed", "conversation.deleted"], ready },
  );
  const tasks = useLoaded(() => get<List<Task>>("/api/tasks?status=running&limit=20"), {
    on: ["task.queued", "task.started", "task.finished", "approval.asked", "approval.decided"],
    ready,
  });
  const runs = useLoaded(() => get<List<RunSummary>>("/api/runs?limit=20"), {
    on: ["run.started", "run.finished", "approval.asked", "approval.decided"],
    ready,
  });
  const plans = useLoaded(() => get<List<Planning>>("/api/plans"), { on: ["plan.changed"], ready });
  const approvals = useLoaded(() => get<List<Approval>>("/api/approvals?state=waiting&limit=200"), {
    on: ["approval.asked", "approval.decided"],
    ready,
  });
  /** Decided approvals, which are hidden before the list is updated. */
  const decided = ref(new Set<string>());
  io.on(["approval.decided"], ({ data }) => void decided.value.add(data.id));
  const aside = ref(new Set<string>());
  const readAside = () => new Set((localStorage.getItem(ASIDE) ?? "").split(" "));

  const now = ref(Date.now());
  const clock = setInterval(() => {
    now.value = Date.now();
  }, 20_000);
  onScopeDispose(() => clearInterval(clock));

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
    /** The time, which moves every 20 seconds: precise enough for how long ago something was. */
    now,
    /** Typed text that may contain secrets. It is kept in memory only, while the page is open. */
    typed: new Map<string, string>(),
    conversations: computed(() => conversations.data.value?.items ?? []),
    /** Whether there are more conversations than these. */
    hasMoreConversations: computed(() => conversations.data.value?.next !== undefined),
    async moreConversations(): Promise<void> {
      pages.value += 1;
      await conversations.reload();
    },
    /** What a conversation is called, where that is known. */
    titleOf: (name: string): string => conversations.data.value?.items.find((each) => each.name === name)?.title ?? name,
    running: computed(() => ({
      tasks: (tasks.data.value?.items ?? []).filter(({ status }) => status === "running"),
      runs: (runs.data.value?.items ?? []).filter(({ status }) => status === "running"),
    })),
    approvals: waiting,
    plans: asking,
    failed,
    /** Whether everything that may wait for the user is loaded. */
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
