import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import type { Mode } from "../home/mode-words.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import type { Status } from "../protocol/api.ts";
import { concerns } from "../protocol/approval-text.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { ConversationInfo } from "../protocol/conversations.ts";
import type { Event } from "../protocol/events.ts";
import type { Message } from "../protocol/messages.ts";
import type { TodoItem, TodoList } from "../protocol/todo.ts";
import type { ContextUse } from "../protocol/turns.ts";
import { modeOf } from "./commands/control.ts";
import type { StatusFacts } from "./screen/status-line.ts";

export interface LinkDeps {
  /** Finds the daemon, or starts it. */
  connect: () => Promise<Client>;
  /** Called once, after the daemon's first response. */
  onWelcome: (status: Status, url: string, mode: Mode) => void;
  /** Called with the last turns of a conversation, oldest first. */
  onRecall: (messages: Message[]) => void;
  onEvent: (event: Event) => void;
  onFacts: (facts: Partial<StatusFacts> & { todo?: TodoItem[] }) => void;
  onApprovals: (waiting: Approval[]) => void;
  onLost: () => void;
  onBack: () => void;
  /** Called if the daemon can be neither found nor started, or refuses to open the conversation. */
  onFailed: (error: unknown) => void;
}

const TURNS = 6;
/** How many events to go back to find the start of the running turn. */
const BACK = 5_000;
const REFRESH_MS = 150;
const AGAIN_MS = 500;

/**
 * The connection to the daemon. It follows one conversation until told otherwise and keeps the status line's facts up to date.
 */
export class Link {
  readonly #deps: LinkDeps;
  #client: Client | undefined;
  #following = new AbortController();
  #refreshing: NodeJS.Timeout | undefined;
  #isWelcome = false;
  #conversation = "";

  constructor(deps: LinkDeps) {
    this.#deps = deps;
  }

  get client(): Client | undefined {
    return this.#client;
  }

  /** Finds the daemon, opens the conversation and follows it. `onOpen` receives the conversation. */
  async begin(
    open: (client: Client) => Promise<ConversationInfo>,
    onOpen: (conversation: ConversationInfo) => void,
  ): Promise<void> {
    const { signal } = this.#following;
    try {
      this.#client ??= await this.#deps.connect();
      const conversation = await this.#opened(this.#client, open, signal);
      if (signal.aborted || !conversation) return;
      onOpen(conversation);
      await this.follow(conversation.name);
    } catch (error) {
      this.#deps.onFailed(error);
    }
  }

  /** Waits for a daemon that goes away meanwhile. What the daemon refuses is an error. */
  async #opened(client: Client, open: (client: Client) => Promise<ConversationInfo>, signal: AbortSignal) {
    for (let isTold = false; !signal.aborted; ) {
      try {
        return await open(client);
      } catch (error) {
        if (error instanceof UserError && error.exitCode !== ExitCode.unreachable) throw error;
        if (!isTold) this.#lost();
        isTold = true;
        await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  /** Leaves the current conversation, then shows and follows this one. */
  async follow(conversation: string): Promise<void> {
    this.#following.abort();
    this.#following = new AbortController();
    this.#conversation = conversation;
    const { signal } = this.#following;
    const client = this.#client;
    if (!client) return;
    let isTold = false;
    while (!signal.aborted) {
      try {
        return await this.#hear(client, conversation, signal);
      } catch {
        // The daemon went away while the conversation was being opened.
        if (!isTold && !signal.aborted) this.#lost();
        isTold = true;
        await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  leave(): void {
    this.#following.abort();
    clearTimeout(this.#refreshing);
  }

  /** Requests the facts again after a short delay, which merges several calls. */
  refresh(): void {
    this.#refreshing ??= setTimeout(() => {
      this.#refreshing = undefined;
      // If this fails, the next event triggers another try.
      void this.#ask().catch(() => undefined);
    }, REFRESH_MS);
  }

  async #hear(client: Client, conversation: string, signal: AbortSignal): Promise<void> {
    const { at, messages } = await this.#look(client, conversation, signal);
    if (signal.aborted) return;
    this.#deps.onRecall(messages);
    this.#deps.onFacts({ connection: "connected" });
    const running = messages.find(({ status }) => status === "running");
    // The running turn's events are replayed to show what it has said so far.
    const after = running ? Math.max(0, at - BACK) : at;
    const news = client.events({ ...this.#options(conversation, signal), after });
    for await (const event of news) {
      const isOld = event.id <= at && event.type !== "disk.changed";
      if (isOld && !(running && isOf(event, running.id))) continue;
      this.#deps.onEvent(event);
      if (!/^message\.(delta|tool|steered)$|^task\.progress$/.test(event.type)) this.refresh();
    }
  }

  /** Loads the last turns, and the number of an event from just before, so that no later event is missed. */
  async #look(client: Client, conversation: string, signal: AbortSignal): Promise<{ at: number; messages: Message[] }> {
    const place = deferred<number>();
    const once = new AbortController();
    const both = AbortSignal.any([signal, once.signal]);
    const opening = client.events({ ...this.#options(conversation, both), onPlace: place.resolve });
    opening.next().then(() => place.reject(new Error("nobody told the place")), place.reject);
    try {
      const at = await place.promise;
      const path = `/api/messages?conversation=${encodeURIComponent(conversation)}&limit=${TURNS}`;
      const [{ items }] = await Promise.all([client.request<{ items: Message[] }>("GET", path), this.#ask()]);
      return { at, messages: items.reverse() };
    } finally {
      once.abort();
    }
  }

  #options(conversation: string, signal: AbortSignal) {
    return { conversation, signal, wait: "for ever" as const, onLost: () => this.#lost(), onBack: () => this.#back() };
  }

  #lost(): void {
    this.#deps.onFacts({ connection: "reconnecting" });
    this.#deps.onLost();
  }

  #back(): void {
    this.#deps.onFacts({ connection: "connected" });
    this.#deps.onBack();
    this.refresh();
  }

  async #ask(): Promise<void> {
    const client = this.#client;
    if (!client) return;
    const { onFacts, onApprovals, onWelcome } = this.#deps;
    const conversation = this.#conversation;
    const at = `/api/conversations/${encodeURIComponent(conversation)}`;
    const [status, runs, usage, approvals, mode, { context }, { items: todo }] = await Promise.all([
      client.request<Status>("GET", "/api/status"),
      client.request<{ items: { status: string }[] }>("GET", "/api/runs?limit=20"),
      client.request<{ items: { name: string; inputTokens: number; outputTokens: number }[] }>(
        "GET",
        "/api/usage?by=conversation",
      ),
      client.request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting"),
      modeOf(client, conversation),
      client.request<{ context: ContextUse | null }>("GET", `${at}/context`),
      client.request<TodoList>("GET", `${at}/todo`),
    ]);
    if (!this.#isWelcome) onWelcome(status, client.url, mode);
    this.#isWelcome = true;
    const used = usage.items.find(({ name }) => name === conversation);
    onApprovals(approvals.items.filter((each) => concerns(each, conversation)));
    onFacts({
      engine: status.engine,
      mode,
      context,
      todo,
      queue: status.queue.waiting,
      tasks: (status.counts.tasksRunning ?? 0) + (status.counts.tasksQueued ?? 0),
      runs: runs.items.filter((run) => run.status === "running").length,
      approvals: status.counts.approvalsWaiting ?? 0,
      isDiskFull: status.disk?.state === "full",
      tokens: used ? used.inputTokens + used.outputTokens : 0,
    });
  }
}

function isOf(event: Event, id: string): boolean {
  return event.type.startsWith("message.") && event.type !== "message.finished" && "id" in event.data && event.data.id === id;
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
