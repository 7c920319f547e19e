import type { EngineKind } from "../engine/port.ts";
import { type Config, type ConfigKey, loadConfig, parseConfig } from "../home/config.ts";
import type { Finding } from "../protocol/doctor.ts";
import type { ModelCall } from "../protocol/usage.ts";
import type { Shell } from "./output.ts";

export type Changes = { [K in ConfigKey]?: unknown };

/** The answers: the changes to write, and the chosen engine. */
export interface Answered {
  changes: Changes;
  engine: EngineKind | undefined;
  service: boolean;
}

/** The resulting configuration. Throws a `UserError` if it is invalid. */
export function configWith({ paths }: Shell, changes: Changes): Config {
  const before = loadConfig(paths.config);
  const merged = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined);
  return parseConfig(Object.fromEntries(merged), "config.json");
}

/** Makes one real request with the answers before writing them. */
export async function tryOut(
  shell: Shell,
  { changes, engine }: Pick<Answered, "changes" | "engine">,
): Promise<Finding | undefined> {
  const { model } = await import("../daemon/doctor.ts");
  const env = engine === undefined ? shell.env : { ...shell.env, IO_ENGINE: engine };
  // A daemon that has the data folder counts the calls itself.
  const record = async (_: unknown, calls: readonly ModelCall[]) => {
    await shell.client().request("POST", "/api/usage", { actor: "setup", calls });
  };
  const settings = configWith(shell, changes);
  const findings = await model({ paths: shell.paths, env, actor: "setup", settings, ...(shell.daemon() && { record }) });
  return findings.find(({ state }) => state === "failed") ?? findings.at(-1);
}

export function formatTrial({ state, found, remedy }: Finding): string {
  const sign = { ok: "The model works", warning: "Take note", failed: "The model does not answer" }[state];
  return `${sign}: ${found}${remedy ? `\n${remedy}` : ""}`;
}

/** The other settings that would take precedence over the choice. */
export function overridingSettings({ env }: Shell, engine: EngineKind | undefined): string[] {
  const notes: string[] = [];
  if (engine !== undefined && env.IO_ENGINE && env.IO_ENGINE !== engine)
    notes.push(`IO_ENGINE is "${env.IO_ENGINE}" here and comes before your choice: unset it where IO is started.`);
  if (engine === "copilot" && env.COPILOT_PROVIDER_BASE_URL)
    notes.push("COPILOT_PROVIDER_BASE_URL is set here and comes before GitHub Copilot: unset it where IO is started.");
  if (engine === "rehearsal")
    notes.push("Another model that is there would come before the rehearsal model: IO_ENGINE=rehearsal keeps to it.");
  return notes;
}
