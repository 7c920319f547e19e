import { setTimeout as sleep } from "node:timers/promises";
import type { ServerContext } from "@modelcontextprotocol/server";
import type { Approval, WaitsFor } from "../../protocol/approvals.ts";
import { type Message, type MessageProgress, shownFailure } from "../../protocol/messages.ts";
import { type IoAccess, persistently, segment } from "./access.ts";

/** Some clients drop a call after a minute, even if they receive progress. */
export const MOST_WAIT_S = 45;
/** The first and the longest time of one look. */
const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 500;
const TELL_EVERY_MS = 5_000;

/** A message as a client reads it. */
export interface ShownMessage {
  message: string;
  conversation: string;
  status: Message["status"] | "waiting";
  reply: string | null;
  approvals: ShownApproval[];
}

export interface ShownApproval {
  id: string;
  summary: string;
  command: string;
}

/** Reports progress to a client that asked for it. */
function createProgress({ mcpReq }: ServerContext) {
  const progressToken = mcpReq._meta?.progressToken;
  let told = "";
  let toldAt = Number.NEGATIVE_INFINITY;
  let progress = 0;
  return async (words: () => string | Promise<string>): Promise<void> => {
    if (progressToken === undefined) return;
    const message = await words();
    if (message === told && performance.now() - toldAt < TELL_EVERY_MS) return;
    [told, toldAt] = [message, performance.now()];
    progress += 1;
    await mcpReq
      .notify({ method: "notifications/progress", params: { progressToken, progress, message } })
      .catch(() => undefined);
  };
}

interface Looking<T> {
  /** Returns when it is over, or after this time. */
  look: (withinMs: number) => Promise<T>;
  isOver: (seen: T) => boolean;
  words: (seen: T) => string | Promise<string>;
  seconds: number;
  context: ServerContext;
}

/** Looks repeatedly until it is over, the time is up, or the client cancels. */
async function wait<T>({ look, isOver, words, seconds, context }: Looking<T>): Promise<T> {
  const { signal } = context.mcpReq;
  const begun = performance.now();
  const tell = createProgress(context);
  const cut = new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true }));
  const mostMs = Math.min(seconds, MOST_WAIT_S) * 1_000;
  let withinMs = Math.min(mostMs, FIRST_LOOK_MS);
  for (;;) {
    const looking = persistently(() => look(Math.round(withinMs)));
    looking.catch(() => undefined);
    const seen = (await Promise.race([looking, cut])) ?? (await persistently(() => look(0)));
    const waited = performance.now() - begun;
    if (isOver(seen) || signal.aborted || waited >= mostMs) return seen;
    await tell(() => words(seen));
    // With backoff, so that an approval is reported soon and a long wait costs little.
    withinMs = Math.min(LAST_LOOK_MS, Math.max(FIRST_LOOK_MS, waited / 10), mostMs - waited);
  }
}

/** Waits for the work that other programs asked for. */
export function createWaits({ request, isClosing }: IoAccess) {
  /** The questions that hold these works up, by id, each with the command that decides it. */
  async function questionsOf(works: readonly { waitsFor?: WaitsFor | undefined }[]): Promise<Map<string, ShownApproval>> {
    if (works.every(({ waitsFor }) => waitsFor === undefined)) return new Map();
    const { items } = await request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting&limit=200");
    return new Map(items.map(({ id, summary }) => [id, { id, summary, command: `io approval allow ${id}` }]));
  }
  /** Each work with the questions that hold it up. */
  async function withApprovals<T extends { waitsFor?: WaitsFor | undefined }>(works: readonly T[]) {
    const questions = await questionsOf(works);
    return works.map((seen) => ({ seen, approvals: (seen.waitsFor?.approvals ?? []).flatMap((id) => questions.get(id) ?? []) }));
  }

  async function show(message: Message): Promise<ShownMessage> {
    const { id, conversation, status } = message;
    const [{ approvals } = { approvals: [] }] = await withApprovals([message]);
    const failure = shownFailure(message);
    const reply = failure === undefined ? message.reply : [message.reply, failure].filter(Boolean).join("\n\n");
    return { message: id, conversation, status: approvals.length > 0 ? "waiting" : status, reply, approvals };
  }

  async function wordsOf(id: string): Promise<string> {
    const { text, tools } = await request<MessageProgress>("GET", `/api/messages/${segment(id)}/progress`);
    const last = tools.at(-1);
    if (last?.state === "started") return `${last.tool}${last.args === undefined ? "" : `: ${last.args}`}`;
    return text === "" ? "IO is working" : `IO is answering (${text.length} letters so far)`;
  }

  return {
    withApprovals,
    /** Waits for a message; with `cancels`, a client that cancels the call cancels the message too. */
    async message(id: string, seconds: number, context: ServerContext, { cancels = false } = {}): Promise<ShownMessage> {
      const path = `/api/messages/${segment(id)}`;
      const seen = await wait({
        look: async (withinMs) => show(await request<Message>("GET", `${path}?waitMs=${withinMs}`)),
        isOver: ({ status }) => !["queued", "running"].includes(status),
        words: () => wordsOf(id),
        ...{ seconds, context },
      });
      if (!cancels || !context.mcpReq.signal.aborted || isClosing()) return seen;
      // It may have ended just now, which is fine.
      if (seen.status === "queued" || seen.status === "running") await request("POST", `${path}/cancel`).catch(() => undefined);
      return seen;
    },
    /** The same for a task or a run. */
    async work<T extends { finishedAt: string | null; status: string; waitsFor?: WaitsFor | undefined }>(
      path: string,
      owner: string,
      seconds: number,
      context: ServerContext,
    ): Promise<{ seen: T; approvals: ShownApproval[] }> {
      let looks = 0;
      return wait({
        look: async (withinMs) => {
          await sleep(looks++ === 0 ? 0 : withinMs);
          const seen = await request<T>("GET", path);
          const [held] = await withApprovals([seen]);
          return held!;
        },
        isOver: ({ seen, approvals }) => seen.finishedAt !== null || approvals.length > 0,
        words: ({ seen }) => `${owner} is ${seen.status}`,
        ...{ seconds, context },
      });
    },
  };
}
export type Waits = ReturnType<typeof createWaits>;
