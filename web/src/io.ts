import { type InjectionKey, inject, onScopeDispose, readonly, ref, shallowRef } from "vue";
import type { Status } from "../../src/protocol/api.ts";
import type { Event, EventType } from "../../src/protocol/events.ts";
import { get, messageOf, Refused, request, SESSION_ENDED } from "./lib/api.ts";
import { forgetKey, hasKey, keepKey, keyHeader } from "./lib/session-key.ts";
import { type Connection, type Feed, openFeed } from "./live/feed.ts";

type Listener = (event: Event) => void;

export interface IoDeps {
  /** Set if the daemon marked the page as signed in, which saves a request. */
  isSignedIn?: boolean;
  /**
   * Returns the path of the first view's data. It is requested before that view exists, and the event stream continues from the
   * response.
   */
  firstPath?: () => string | undefined;
}

/** What every view can use: the event stream, the sign-in state, and messages to the user. */
export function createIo({ isSignedIn = false, firstPath = () => undefined }: IoDeps = {}) {
  const signedIn = ref<boolean>();
  /** Whether the session ended without the user signing out. */
  const expired = ref(false);
  const settled = ref(false);
  const early = new Map<string, Promise<unknown>>();
  const connection = ref<Connection>("connecting");
  const lostAt = ref<number>();
  const status = shallowRef<Status>();
  const notice = shallowRef<{ text: string; kind: "good" | "bad"; undo?: (() => void) | undefined }>();
  const listeners = new Set<Listener>();
  const returns = new Set<() => void>();
  let feed: Feed | undefined;
  let asked: Promise<void> = Promise.resolve();
  let wasLost = false;

  const onState = (state: Connection) => {
    if (state === "refused") {
      expire();
      return;
    }
    connection.value = state;
    if (state === "reconnecting") {
      wasLost = true;
      lostAt.value ??= Date.now();
    }
    if (state !== "connected") return;
    lostAt.value = undefined;
    if (settled.value) void refresh();
    if (wasLost) for (const each of returns) each();
    wasLost = false;
  };
  const expire = () => {
    expired.value ||= signedIn.value === true;
    signedIn.value = false;
    feed?.close();
    feed = undefined;
  };
  globalThis.addEventListener?.(SESSION_ENDED, () => signedIn.value && expire());
  const enter = () => {
    signedIn.value = true;
    // The views load what they missed once the event stream is connected again.
    wasLost ||= expired.value;
    expired.value = false;
    const path = feed || settled.value ? undefined : firstPath();
    if (path === undefined) follow(undefined);
    else asked = ask(path).then(follow);
  };
  /** Requests the first view's data. Returns the ID of the last event that the response includes, if there is one. */
  const ask = async (path: string): Promise<number | undefined> => {
    let upTo: number | undefined;
    const onHeaders = (headers: Headers) => {
      upTo = Number(headers.get("last-event-id") ?? Number.NaN);
    };
    const answer = request("GET", path, undefined, { onHeaders });
    early.set(path, answer);
    await answer.catch(() => undefined);
    return Number.isNaN(upTo) ? undefined : upTo;
  };
  const follow = (after: number | undefined) => {
    feed ??= openFeed({
      open: (lastId, signal) =>
        fetch("/api/events", {
          signal,
          headers: { ...keyHeader(), ...(lastId !== undefined && { "last-event-id": String(lastId) }) },
        }),
      onState,
      onEvent: (event) => {
        if (event.type === "disk.changed" && status.value) status.value = { ...status.value, disk: event.data };
        for (const listener of listeners) listener(event);
      },
      after,
    });
  };
  const login = async (offered: { token: string } | { ticket: string }) => {
    keepKey((await request<{ key: string }>("POST", "/api/login", offered)).key);
    enter();
  };
  /** Whether this browser is signed in. If it has only the cookie, the daemon also sends the key. */
  const isAdmitted = async () => {
    const { signedIn: known, key } = await get<{ signedIn: boolean; key?: string }>("/api/login");
    if (key !== undefined) keepKey(key);
    return known;
  };
  const refresh = async () => {
    status.value = await get<Status>("/api/status").catch(() => status.value);
  };

  return {
    signedIn: readonly(signedIn),
    expired: readonly(expired),
    /** Whether the first view has been painted, so that everything around it may load. */
    settled: readonly(settled),
    settle: () => {
      settled.value = true;
      if (signedIn.value) void refresh();
    },
    /** Resolves when the early request has succeeded or failed. */
    asked: (): Promise<void> => asked,
    /** Returns the early response, once, or requests the data. */
    first<T>(path: string): Promise<T> {
      const answer = early.get(path) as Promise<T> | undefined;
      early.delete(path);
      return answer ?? get<T>(path);
    },
    connection: readonly(connection),
    lostAt: readonly(lostAt),
    status,
    notice,
    refresh,
    /** Finds out whether the user is signed in, and uses up a ticket from the address. Returns why access was refused. */
    async begin(ticket: string | null): Promise<string | undefined> {
      if (ticket !== null) {
        try {
          await login({ ticket });
          return undefined;
        } catch (error) {
          const known = await isAdmitted().catch(() => false);
          if (known) enter();
          else signedIn.value = false;
          return known ? undefined : messageOf(error);
        }
      }
      if (isSignedIn && hasKey()) {
        enter();
        return undefined;
      }
      for (;;) {
        try {
          if (await isAdmitted()) enter();
          else signedIn.value = false;
          return undefined;
        } catch (error) {
          if (!(error instanceof Refused) || error.status !== 0) throw error;
          connection.value = "reconnecting";
          await new Promise((again) => setTimeout(again, 1_000));
        }
      }
    },
    async signIn(token: string): Promise<void> {
      await login({ token });
    },
    async signOut(): Promise<void> {
      await request("DELETE", "/api/login");
      forgetKey();
      feed?.close();
      feed = undefined;
      expired.value = false;
      signedIn.value = false;
    },
    hurry: () => feed?.hurry(),
    /** Calls the listener on these events until the caller's scope ends. */
    on<T extends EventType>(types: readonly T[], listener: (event: Event<T>) => void): void {
      const each: Listener = (event) => {
        if ((types as readonly EventType[]).includes(event.type)) listener(event as Event<T>);
      };
      listeners.add(each);
      onScopeDispose(() => listeners.delete(each));
    },
    /** Called when the connection is back after a loss. */
    onReturn(work: () => void): void {
      returns.add(work);
      onScopeDispose(() => returns.delete(work));
    },
    /** Shows what was done, with an undo button if it can be undone. */
    say(text: string, undo?: () => void): void {
      notice.value = { text, kind: "good", undo };
    },
    complain(error: unknown): void {
      // The sign-in dialog already covers the page.
      if (error instanceof Refused && error.status === 401) return;
      notice.value = { text: messageOf(error), kind: "bad" };
    },
  };
}
export type Io = ReturnType<typeof createIo>;

export const IO: InjectionKey<Io> = Symbol("io");

export function useIo(): Io {
  const io = inject(IO);
  if (!io) throw new Error("There is no page around this.");
  return io;
}
