import type { Engine } from "../../engine/port.ts";
import { pictureId } from "../../engine/sessions/pictures.ts";
import { pictureMark } from "../../engine/wire/pictures.ts";
import type { Config } from "../../home/config.ts";
import { newId } from "../../lib/ids.ts";
import { indented } from "../../lib/quoted.ts";
import type { BudgetReport } from "../../protocol/budgets.ts";
import { addCall, noUsage, type Spender, type Spending, type Usage } from "../../protocol/usage.ts";
import { withSteps } from "./client-tools.ts";
import { OpenAiError } from "./errors.ts";
import type { Wanted } from "./request.ts";

export interface LightDeps {
  engine: Pick<Engine, "session" | "deleteSession">;
  spending: Pick<Spending, "record"> & { report(): BudgetReport };
  config: () => Pick<Config, "turnSilenceMs" | "turnCapMs">;
  /** The working folder of the session, which has no tools to read it. */
  folder: string;
}

const PERSONA = "You are IO. Answer plainly and briefly. You have no tools and remember nothing.";

/** Plain answers without tools or memory; only the cost is recorded. */
export function createLight({ engine, spending, config, folder }: LightDeps) {
  return async (
    { prompt: words, pictures, history, system }: Wanted,
    { signal, onText }: { signal: AbortSignal; onText: (text: string) => void },
  ): Promise<{ text: string; usage: Usage }> => {
    const id = newId("light");
    const prompt = [words, ...pictures.map((bytes) => pictureMark(pictureId(bytes)))].join(" ");
    const spender: Spender = { owner: id, actor: "orchestrator", agent: "orchestrator", source: "openai" };
    const before = history.map((said) => `${said.role === "user" ? "User" : "IO"}: ${indented(withSteps(said)).trimStart()}`);
    const { turnSilenceMs, turnCapMs } = config();
    const session = engine.session({
      id,
      systemMessage: () => [PERSONA, system].filter(Boolean).join("\n\n"),
      tools: [],
      workingDirectory: folder,
    });
    let usage = noUsage();
    let said = "";
    try {
      const result = await session.run({
        owner: id,
        prompt: before.length === 0 ? prompt : `What was said so far:\n${before.join("\n")}\n\nNow the user says:\n${prompt}`,
        pictures,
        attempt: 1,
        signal,
        silenceMs: turnSilenceMs,
        capMs: turnCapMs,
        onEvent(event) {
          if (event.kind === "usage") {
            usage = addCall(usage, event.call);
            spending.record(spender, event.call);
          } else if (event.kind === "delta") {
            said += event.text;
            onText(event.text);
          }
        },
        // Nobody is asked for more budget for a mere title.
        beforeCall: async () => usedUp(spending.report()),
      });
      if (result.outcome !== "done") {
        const { message = "the turn failed.", code = "failed" } = result.error ?? {};
        throw new OpenAiError(usedUp(spending.report()) === undefined ? 502 : 429, message, code);
      }
      if (!said.endsWith(result.text)) onText(result.text.startsWith(said) ? result.text.slice(said.length) : result.text);
      return { text: result.text, usage };
    } finally {
      await engine.deleteSession(id).catch(() => undefined);
    }
  };
}
export type Light = ReturnType<typeof createLight>;

function usedUp({ items }: BudgetReport): string | undefined {
  const isOver = items.some(({ kind, state }) => kind === "day" && state === "used up");
  return isOver ? "the budget of the day is used up. See: io budget show" : undefined;
}
