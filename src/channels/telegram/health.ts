import { oneLine } from "../../lib/quoted.ts";
import { ChannelInfo, type ChannelState } from "../../protocol/channels.ts";
import type { Emit } from "../../protocol/events.ts";
import { readJson } from "../../store/read-json.ts";
import type { State } from "../../store/state.ts";
import { type Trouble, wordsOf } from "./trouble-words.ts";

export const HEALTH_KEY = "telegram:health";
const TURNED_AWAY = "telegram:turned-away";

const Kept = ChannelInfo.omit({ name: true });

/** The state of the channel, on disk, so that the doctor in another process can read it. */
export interface Health {
  info(): ChannelInfo;
  is(state: ChannelState): boolean;
  set(state: ChannelState, detail?: string): void;
  /** Records why Telegram could not be polled. */
  failed(trouble: Trouble): void;
  /** Records that Telegram accepts no messages for the user, with its reason. */
  turnedAway(why: string): void;
  isTurnedAway(): boolean;
  /** Records that the user wrote, so messages can reach them again. */
  heard(): void;
}

export interface HealthDeps {
  state: State;
  emit: Emit;
  now?: () => Date;
}

export function createHealth({ state, emit, now = () => new Date() }: HealthDeps): Health {
  let current = readHealth(state) ?? { name: "telegram", state: "off" as ChannelState, since: now().toISOString(), detail: null };
  let away = state.get(TURNED_AWAY) ?? null;

  function set(next: ChannelState, detail: string | null = next === "connected" ? away : null): void {
    if (next === current.state && detail === current.detail) return;
    // A restart in the middle of an outage does not reset its start time.
    if (next === "starting" && current.state === "unreachable") return;
    const since = next === current.state ? current.since : now().toISOString();
    current = { name: "telegram", state: next, since, detail };
    state.set(HEALTH_KEY, JSON.stringify({ state: next, since, detail }));
    emit({ type: "channel.changed", data: current });
  }

  return {
    info: () => current,
    is: (wanted) => current.state === wanted,
    set,
    turnedAway(why) {
      if (away !== null) return;
      const since = now().toISOString().slice(0, 16).replace("T", " ");
      away = `Telegram takes nothing for the user since ${since} UTC (${oneLine(why, 100)}). Unblock the bot and send it /start; what was said meanwhile is in the conversation.`;
      state.set(TURNED_AWAY, away);
      if (current.state === "connected") set("connected");
    },
    isTurnedAway: () => away !== null,
    heard() {
      if (away === null) return;
      away = null;
      state.delete(TURNED_AWAY);
      if (current.state === "connected") set("connected");
    },
    failed(trouble) {
      if (trouble.kind === "refused" && trouble.code === 409) set("conflict", conflictIn(trouble.why));
      else if (trouble.kind === "refused" && (trouble.code === 401 || trouble.code === 404))
        set("refused", "Telegram does not know the bot's token. Set telegramBotToken to the one that @BotFather shows.");
      else if (trouble.kind !== "flood")
        set("unreachable", `Telegram cannot be reached (${wordsOf(trouble)}). What is owed is kept.`);
    },
  };
}

/** The last recorded state of the channel. */
export function readHealth(state: Pick<State, "get">): ChannelInfo | undefined {
  const kept = readJson(Kept, state.get(HEALTH_KEY));
  return kept && { name: "telegram", ...kept };
}

function conflictIn(why: string): string {
  return /webhook/i.test(why)
    ? "A webhook is set for this bot, so that its messages go elsewhere. Delete it (deleteWebhook), or use a bot of IO's own."
    : "A second program polls with the same bot token. End it, or give IO a bot of its own.";
}
