import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import { MODE_WORDS, MODES, type Mode } from "../../home/mode-words.ts";
import { quoted } from "../../lib/quoted.ts";
import type { Status } from "../../protocol/api.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { invalid } from "./errors.ts";

/** The settings that an editor can change. */
type Settings = Pick<ConversationInfo, "mode" | "model">;

/** Stands for the default mode and the default model. */
const DEFAULT = "default";
/** The longest that opening a session waits for the provider's models. */
const MODELS_MS = 3_000;

export interface SettingsDeps {
  access: Pick<AcpAccess, "request">;
  conversation: string;
  /** Whether the conversation exists; until then, settings are only remembered. */
  isKept: () => boolean;
}

/** Mode and model of one session. An editor can make IO ask more often and undo that, but never make it ask less. */
export function createSettings({ access, conversation, isKept }: SettingsDeps) {
  let known: Settings = { mode: null, model: null };
  let models: { id: string; name: string }[] = [];
  /** The mode before the editor made it stricter. */
  let before: { mode: Mode | null } | undefined;

  async function change(changes: Partial<Settings>): Promise<void> {
    const earlier = known;
    // Set before the events report it back.
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
    /** The settings made before the conversation existed. */
    toKeep: (): Partial<Settings> => Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null)),
    /** Takes over settings that were changed elsewhere; returns whether they differ. */
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
