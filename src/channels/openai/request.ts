import { z } from "zod";
import { pictureTypeOf } from "../../lib/file-type.ts";
import { explainIssues } from "../../lib/validation.ts";
import { type ClientStep, callsIn, resultOf } from "./client-tools.ts";
import { badRequest, OpenAiError } from "./errors.ts";
import { refuseInChat, refuseInResponses } from "./unsupported.ts";

export interface Said {
  role: "user" | "assistant";
  text: string;
  /** Calls of the client's own tools and their results, after the text. */
  steps: ClientStep[];
}

/** A request, whichever of the two APIs it uses. */
export interface Wanted {
  model: Model;
  /** The user's last message. */
  prompt: string;
  /** Its pictures. */
  pictures: Uint8Array[];
  /** The earlier messages, oldest first. */
  history: Said[];
  /** The client's own instructions. */
  system: string;
  stream: boolean;
  /** Whether a stream ends with the usage. */
  withUsage: boolean;
  background: boolean;
  /** The response that this one continues. */
  previous: string | undefined;
  metadata: Record<string, string>;
}

/** `io-light` is a plain answer: no tools, no memory, nothing stored. */
export const MODELS = ["io", "io-light"] as const;
export type Model = (typeof MODELS)[number];

/** As long as the API's messages can be. */
const LONGEST_TEXT = 1_000_000;

const Part = z.looseObject({ type: z.string() });
const Content = z.union([z.string(), z.array(Part)]).nullish();
const ChatMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
  content: Content,
});
const InputItem = z.looseObject({ type: z.string().optional(), role: z.string().optional(), content: Content });
const ToolChoice = z.union([z.string(), z.looseObject({})]).nullish();

const ChatRequest = z.looseObject({
  model: z.string(),
  messages: z.array(ChatMessage).min(1, "at least one message is needed"),
  n: z.number().int().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  tool_choice: ToolChoice,
});

/** Kept with the response, within OpenAI's own limits. */
const Metadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, "must hold at most 16 pairs");

const ResponsesRequest = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(InputItem).min(1, "at least one item is needed")]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  tool_choice: ToolChoice,
  metadata: Metadata.nullish(),
});

export function readChat(body: unknown): Wanted {
  const given = checked(ChatRequest, body);
  refuseInChat(given);
  const { model, messages, n, stream, stream_options, tool_choice } = given;
  if ((n ?? 1) !== 1) throw badRequest("n", "IO gives one answer to a request.");
  checkToolChoice(tool_choice);
  const said = messages.map((message) => ({ ...message, ...readContent(message.content, "messages") }));
  return {
    ...split(said, "messages"),
    model: modelFor(model, said),
    stream: stream ?? false,
    withUsage: stream_options?.include_usage ?? false,
    background: false,
    previous: undefined,
    metadata: {},
  };
}

/** `replyOf` finds the text of an earlier answer by its item's id. */
export function readResponses(body: unknown, replyOf: (item: string) => string | undefined): Wanted {
  const given = checked(ResponsesRequest, body);
  refuseInResponses(given);
  const { model, input, instructions, previous_response_id, stream, background, tool_choice, metadata } = given;
  checkToolChoice(tool_choice);
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const messages = items.flatMap((item) => inputItem(item, replyOf));
  const said = instructions ? [{ role: "system", text: instructions, pictures: [] }, ...messages] : messages;
  return {
    ...split(said, "input"),
    model: modelFor(model, said),
    stream: stream ?? false,
    withUsage: true,
    background: background ?? false,
    previous: previous_response_id ?? undefined,
    metadata: metadata ?? {},
  };
}

function checked<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const param = issue?.path[0] === undefined ? null : String(issue.path[0]);
  throw new OpenAiError(400, explainIssues(read.error), null, param);
}

function checkToolChoice(choice: z.infer<typeof ToolChoice>): void {
  const mode = typeof choice === "object" ? modeIn(choice) : choice;
  if (mode === undefined || mode === null || mode === "auto" || mode === "none") return;
  throw badRequest("tool_choice", "IO uses its own tools and calls none of a client's, so it cannot be made to call one.");
}

/** A list of allowed tools forces none of them, unless its mode says so. */
function modeIn(choice: Record<string, unknown> | null): unknown {
  if (choice?.type !== "allowed_tools") return choice;
  const { mode } = { ...choice, ...(choice.allowed_tools as object | undefined) } as { mode?: unknown };
  return mode ?? "auto";
}

function modelFor(name: string, said: readonly { role: string; text: string }[]): Model {
  const known = MODELS.find((model) => model === name);
  if (known === undefined) throw unknownModel(name);
  // Open WebUI asks for titles, tags and follow-up questions this way.
  const talk = said.filter(({ role }) => role !== "system" && role !== "developer");
  return talk.length === 1 && talk[0]?.role === "user" && talk[0].text.startsWith("### Task:") ? "io-light" : known;
}

export function unknownModel(name: string): OpenAiError {
  const message = `The model ${JSON.stringify(name.slice(0, 100))} does not exist here. IO has ${MODELS.join(" and ")}.`;
  return new OpenAiError(404, message, "model_not_found", "model");
}

/** An item of a response's input as a message; what is neither a message nor about a tool is ignored. */
function inputItem(item: z.infer<typeof InputItem>, replyOf: (item: string) => string | undefined): SaidMessage[] {
  const { type, role, content, id } = item;
  if (role !== undefined) return [{ role, ...readContent(content, "input") }];
  // Clients that expect their history to be stored, such as Vercel's AI SDK, name earlier answers instead of repeating them.
  if (typeof id === "string" && (type === undefined || type === "item_reference")) {
    const text = replyOf(id);
    if (text !== undefined) return [{ role: "assistant", text, pictures: [] }];
    throw badRequest(
      "input",
      `there is no item ${JSON.stringify(id.slice(0, 100))} here. Send its text instead.`,
      "item_not_found",
    );
  }
  if (type === "function_call" || type === "custom_tool_call")
    return [{ role: "assistant", text: "", pictures: [], tool_calls: [{ id: item.call_id, function: item }] }];
  if (type !== "function_call_output" && type !== "custom_tool_call_output") return [];
  const output = Content.safeParse(item.output);
  const read = output.success ? readContent(output.data, "input") : { text: JSON.stringify(item.output), pictures: [] };
  return [{ role: "tool", ...read, tool_call_id: item.call_id }];
}

/** The history without instructions. What the client's tools did belongs to the assistant's text before it. */
function historyOf(talk: readonly SaidMessage[]): Said[] {
  const history: Said[] = [];
  /** The tools of the calls so far, by the calls' ids. */
  const tools = new Map<string, string>();
  const add = (more: ClientStep[]) => {
    for (const { tool, call } of more) if (tool !== undefined && call !== undefined) tools.set(call, tool);
    const last = history.at(-1);
    if (last?.role === "assistant") last.steps.push(...more);
    else history.push({ role: "assistant", text: "", steps: more });
  };
  for (const message of talk) {
    const { role, text } = message;
    if (role === "tool" || role === "function")
      add([resultOf(text, message.tool_call_id, message.name ?? tools.get(String(message.tool_call_id)))]);
    else if ((role === "user" || role === "assistant") && text !== "") history.push({ role, text, steps: [] });
    const calls = role === "assistant" ? callsIn(message) : [];
    if (calls.length > 0) add(calls);
  }
  return history;
}

/** Only the user's last message is the prompt; instructions count wherever they stand. */
function split(said: readonly SaidMessage[], param: string) {
  const isSystem = ({ role }: { role: string }) => role === "system" || role === "developer";
  const instructions = said.filter(isSystem).map(({ text }) => text);
  const system = instructions.filter((text) => text.trim() !== "").join("\n\n");
  const talk = said.filter((each) => !isSystem(each));
  const last = talk.at(-1);
  if (last?.role !== "user") throw badRequest(param, "the last message must be the user's.");
  if (last.text.trim() === "") throw badRequest(param, "the last message has no text.");
  if (Math.max(last.text.length, system.length) > LONGEST_TEXT)
    throw badRequest(param, "the last message, and the instructions, may have at most a million characters.");
  return {
    prompt: last.text.trim(),
    pictures: last.pictures,
    history: historyOf(talk.slice(0, -1)),
    system,
  };
}

/** The text of a message, with a placeholder for each picture, and the pictures. */
interface ReadContent {
  text: string;
  pictures: Uint8Array[];
}

/** A message of the request, with its content read. */
interface SaidMessage extends ReadContent {
  role: string;
  [field: string]: unknown;
}

function readContent(content: z.infer<typeof Content>, param: string): ReadContent {
  if (content === null || content === undefined) return { text: "", pictures: [] };
  if (typeof content === "string") return { text: content, pictures: [] };
  const parts = content.map((part) => readPart(part, param));
  return { text: parts.map(({ text }) => text).join("\n"), pictures: parts.flatMap(({ picture }) => picture ?? []) };
}

function readPart(part: z.infer<typeof Part>, param: string): { text: string; picture?: Uint8Array } {
  const { type } = part;
  const words = (text: unknown) => ({ text: typeof text === "string" ? text : "" });
  if (type === "text" || type === "input_text" || type === "output_text") return words(part.text);
  if (type === "refusal") return words(part.refusal);
  if (type === "image_url" || type === "input_image") return readPicture(urlOf(part.image_url), param);
  throw badRequest(param, `a part of the type ${JSON.stringify(type.slice(0, 40))} is not taken here: send text.`);
}

const urlOf = (given: unknown): unknown => (typeof given === "object" && given !== null && "url" in given ? given.url : given);

/** The placeholder is always the same, because it helps to find the conversation again. */
function readPicture(url: unknown, param: string): { text: string; picture?: Uint8Array } {
  const kind = typeof url === "string" ? /^data:(image\/[\w.+-]{1,40})[;,]/i.exec(url)?.[1] : undefined;
  if (typeof url !== "string" || kind === undefined)
    throw badRequest(param, "a picture must be a data URL of an image: IO fetches none for a client.");
  const text = `(a picture of the type ${kind.toLowerCase()} was sent along)`;
  const comma = url.indexOf(",");
  if (!/;base64$/i.test(url.slice(0, comma))) return { text };
  const picture = Buffer.from(url.slice(comma + 1), "base64");
  return pictureTypeOf(picture) === undefined ? { text } : { text, picture };
}
