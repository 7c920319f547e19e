import { z } from "zod";
import { Config, type ConfigKey, nearest, updateConfig } from "../home/config.ts";
import { type Tool, ToolError, tool } from "./tool.ts";

export interface ConfigUpdateDeps {
  configPath: string;
  onChange: (config: Config, key: ConfigKey) => void;
}

/** The keys that cannot widen what a model may do, access or spend without limit; only the user may set the others. */
export const MODEL_KEYS = [
  "defaultModel",
  "modelTiers",
  "logLevel",
  "turnSilenceMs",
  "turnCapMs",
  "taskSilenceMs",
  "taskCapMs",
] as const satisfies readonly ConfigKey[];

/** Changes one harmless setting in the config file. */
export function configUpdate({ configPath, onChange }: ConfigUpdateDeps): Tool {
  return tool({
    name: "config_update",
    description: `Change a setting: ${MODEL_KEYS.join(", ")}. Any other is for the user to set.`,
    schema: z.object({ key: z.string().min(1).max(100), value: z.unknown().describe("the new value, as JSON") }),
    kind: "effect",
    deadlineMs: 10_000,
    async run({ key, value }) {
      const own = MODEL_KEYS.find((name) => name === key);
      if (own === undefined) throw refusal(key);
      if (value === undefined || value === null) throw new ToolError(`value: is missing; ${key} needs one.`);
      if (own.endsWith("Ms") && !isModest(value)) throw new ToolError(MODEST);
      const fitting = Config.shape[own].safeParse(value).success ? value : unquoted(value);
      const config = updateConfig(configPath, { [own]: fitting });
      onChange(config, own);
      return `${key} is now ${JSON.stringify(config[own])}.`;
    },
  });
}

const MODEST =
  "value: a tool may set a time from 10,000 to 14,400,000 milliseconds (10 seconds to 4 hours). The user can set others in config.json.";

function isModest(value: unknown): boolean {
  const ms = Number(unquoted(value));
  return ms >= 10_000 && ms <= 14_400_000;
}

function refusal(key: string): ToolError {
  const known = Object.keys(Config.shape);
  if (known.includes(key)) {
    return new ToolError(
      `"${key}" is not set by tools: only the user can, in config.json. Tell them what you would change and why.`,
    );
  }
  const near = nearest(key, known);
  return new ToolError(
    `There is no setting "${key}".${near ? ` Did you mean "${near}"?` : ""} You can set: ${MODEL_KEYS.join(", ")}.`,
  );
}

/** Models often put a number or an object in quotes. */
function unquoted(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    // It is plain text, and validated as such.
    return value;
  }
}
