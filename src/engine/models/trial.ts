import type { Finding } from "../../protocol/doctor.ts";
import type { EngineTool, TurnResult } from "../../protocol/turns.ts";
import type { ModelCall } from "../../protocol/usage.ts";
import type { Engine, ModelReport, WindowSource } from "../port.ts";
import { idleVariables } from "./keys.ts";
import type { Choice } from "./ladder.ts";
import { endpointOf } from "./provider.ts";

/** The result of trying out a model. */
export interface Trial {
  result: TurnResult;
  /** Whether the model called the tool as asked. */
  called: boolean;
  about: ModelReport;
}

const SYSTEM = "You are being tried out. Do exactly what you are asked, by the tools you have.";
const PROMPT = 'Call the tool `report` once, with the word "ready". When it has answered, say OK and nothing else.';

/** Runs one real turn: streamed, with a tool that the model is asked to call. Reports each model call to `onCall`. */
export async function tryModel(engine: Engine, folder: string, onCall?: (call: ModelCall) => void): Promise<Trial> {
  let called = false;
  const report: EngineTool = {
    name: "report",
    description: "Reports a word to whoever tries the model out.",
    parameters: { type: "object", properties: { word: { type: "string" } }, required: ["word"], additionalProperties: false },
    call: async () => {
      called = true;
      return { ok: true, text: "Reported." };
    },
  };
  const session = engine.session({ id: "trial", systemMessage: () => SYSTEM, tools: [report], workingDirectory: folder });
  const result = await session.run({
    owner: "trial",
    prompt: PROMPT,
    attempt: 1,
    signal: new AbortController().signal,
    silenceMs: 25_000,
    capMs: 45_000,
    onEvent: (event) => void (event.kind === "usage" && onCall?.(event.call)),
  });
  return { result, called, about: await engine.about() };
}

/** The trial's result for people: which model answered, where, and its window. */
export function findingOf(choice: Choice, { result, called, about }: Trial, env: NodeJS.ProcessEnv): Finding {
  const check = "model";
  if (choice.kind === "rehearsal") return { check, state: "warning", found: choice.why, remedy: connectAdvice(env) };
  const { provider, names } = choice;
  const where = provider ? `${addressOf(choice, about.model)} (${names.address})` : "GitHub Copilot";
  const isDone = result.outcome === "done" || (called && result.error?.code === "no_answer");
  if (!isDone) {
    const { message = "it gave no answer." } = result.error ?? {};
    const remedy = result.remedy ?? `What is in brackets is the provider's own word. Another model may do: ${names.model}.`;
    const what = message.endsWith(remedy) ? message.slice(0, -remedy.length).trim() : message;
    return { check, state: "failed", found: `"${about.model}" (${names.model}) at ${where}: ${what}`, remedy };
  }
  const served = result.served.join(", ") || about.model;
  const asked = served === about.model ? "" : ` for "${about.model}"`;
  const window = `its window is taken as ${about.window.toLocaleString("en")} tokens, ${SOURCES[about.windowFrom]}`;
  const answered = `${served} answered${asked} at ${where}`;
  if (called) return { check, state: "ok", found: `${answered} and called a tool; ${window}` };
  const isOff = provider?.models?.some(({ id, tools }) => id === about.model && tools === false);
  if (isOff) return { check, state: "ok", found: `${answered}, without tools as provider.models says; ${window}` };
  return {
    check,
    state: "warning",
    found: `${answered}, but did not call the tool that it was asked to call; ${window}`,
    remedy: toollessAdvice(result.text, choice, about),
  };
}

const SOURCES: Record<WindowSource, string> = {
  config: "from provider.models in config.json",
  provider: "as the provider says",
  refusal: "from what the provider refused",
  name: "as is usual for a model of this name; provider.models in config.json can say another",
  default: "a guess: provider.models in config.json can say what it is",
};

function addressOf({ provider }: Choice, model: string): string {
  if (!provider) return "";
  const wire = provider.type === "anthropic" ? "messages" : provider.wireApi;
  return endpointOf(provider).ask(wire, model).split("?", 1)[0]!;
}

function toollessAdvice(text: string, { names }: Choice, { tools }: ModelReport): string {
  const another = `Name a model that is made for tools with ${names.model}`;
  if (/"?report"?\s*[({"]|tool_call|"arguments"|"parameters"/.test(text))
    return `It wrote the call down as text: its server does not know this model's form of calls (vLLM: --tool-call-parser, llama.cpp: --jinja, Ollama: the template). ${another} otherwise.`;
  if (tools === false) return `Its provider lists it without tools, and IO works by tools. ${another}.`;
  return `IO works by tools, and this model may not use them when it should. ${another}, or try again.`;
}

function connectAdvice(env: NodeJS.ProcessEnv): string {
  const [idle] = idleVariables(env);
  if (idle) return `${idle} is set, but nothing refers to it: run "io setup" to name its provider, then restart IO.`;
  return 'Run "io setup" to name a provider, or set COPILOT_GITHUB_TOKEN, or start Ollama, then restart IO.';
}
