import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import { MODE_WORDS, MODES, type Mode } from "../../home/mode-words.ts";
import { quoted } from "../../lib/quoted.ts";
import type { Status } from "../../protocol/api.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { invalid } from "./errors.ts";

/** What an editor can set for a conversation. */
type Settings = Pick<ConversationInfo, "mode" | "model">;

/** The default of the mode and of the model. */
const DEFAULT = "default";
/** An editor that opens a session does not wait longer than this for the provider's list. */
const MODELS_MS = 3_000;

export interface SettingsDeps {
  access: Pick<AcpAccess, "request">;
  conversation: string;
  /** Whether the conversation is there; before that, what is set is only remembered. */
  isKept: () => boolean;
}

/** Mode and model of one session. An editor can have IO ask more than it would, and take that back; never ask less. */
export function createSettings({ access, conversation, isKept }: SettingsDeps) {
  let known: Settings = { mode: null, model: null };
  let models: { id: string; name: string }[] = [];
  /** What the mode was before the editor made it stricter. */
  let before: { mode: Mode | null } | undefined;

  async function change(changes: Partial<Settings>): Promise<void> {
    const earlier = known;
    // Known before it is told back by the events.
    known = { ...known, ...changes };
    if (!isKept()) return;
    try {
      await access.request("PATCH", `/api/conversations/${segment(conversation)}`, changes);
    } catch (error) {
      known = earlier;
      throw error;
    }
  }
  async function setMode(id: string): Promise<void> {
    if (id !== DEFAULT && id !== "ask") throw invalid(`There is no mode ${quoted(id)} here: ${DEFAULT} or ask.`);
    if (id === modeId()) return;
    if (id === DEFAULT) {
      if (!before)
        throw invalid(`Mode ask was not set here: io conversation set ${conversation} --mode ${DEFAULT} in a terminal ends it.`);
      await change({ mode: before.mode });
      before = undefined;
      return;
    }
    const current = known.mode ?? (await access.request<Status>("GET", "/api/status")).mode ?? "auto";
    if (MODES.indexOf(current) < MODES.indexOf("ask"))
      throw invalid(`This conversation is in mode ${current}, which is stricter than ask: ${MODE_WORDS[current]}.`);
    const { mode } = known;
    await change({ mode: "ask" });
    before = { mode };
  }
  async function setModel(id: string): Promise<void> {
    if (id !== DEFAULT && !models.some((model) => model.id === id))
      throw invalid(`There is no model ${quoted(id)}. Choose one of those that are offered.`);
    await change({ model: id === DEFAULT ? null : id });
  }

  const modeId = () => (known.mode === "ask" ? "ask" : DEFAULT);
  const availableModes = () => [
    { id: DEFAULT, name: "Default", description: defaultWords(known.mode) },
    { id: "ask", name: "Ask", description: MODE_WORDS.ask },
  ];
  return {
    setMode,
    /** What was set before the conversation was there. */
    toKeep: (): Partial<Settings> => Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null)),
    /** What somebody set elsewhere; tells whether that is news. */
    heard({ mode, model }: Settings): boolean {
      const isNews = mode !== known.mode || model !== known.model;
      if (mode !== known.mode) before = undefined;
      known = { mode, model };
      return isNews;
    },
    async loadModels(): Promise<void> {
      const none = { items: [] };
      const late = new Promise<typeof none>((resolve) => setTimeout(resolve, MODELS_MS, none).unref());
      const asked = access.request<{ items: typeof models }>("GET", "/api/models").catch(() => none);
      models = (await Promise.race([asked, late])).items;
    },
    async setOption(id: string, value: unknown): Promise<void> {
      if (typeof value !== "string") throw invalid("The value of this option is one of those that are offered.");
      if (id === "mode") return setMode(value);
      if (id === "model") return setModel(value);
      throw invalid(`There is no option ${quoted(id)} here: mode or model.`);
    },
    modes: (): SessionModeState => ({ currentModeId: modeId(), availableModes: availableModes() }),
    options: (): SessionConfigOption[] => [
      {
        ...{ type: "select", id: "mode", name: "Mode", category: "mode", currentValue: modeId() },
        options: availableModes().map(({ id: value, name, description }) => ({ value, name, description })),
      },
      {
        ...{ type: "select", id: "model", name: "Model", category: "model", currentValue: known.model ?? DEFAULT },
        options: [
          { value: DEFAULT, name: "Default" },
          ...(known.model !== null && !models.some(({ id }) => id === known.model)
            ? [{ value: known.model, name: known.model }]
            : []),
          ...models.map(({ id, name }) => ({ value: id, name })),
        ],
      },
    ],
  };
}
export type SessionSettings = ReturnType<typeof createSettings>;

const defaultWords = (mode: Mode | null): string =>
  mode === null || mode === "ask" ? "As IO is set" : `As this conversation is set: ${MODE_WORDS[mode]}`;
