import { createHash } from "node:crypto";
import { matches, type Rule, type Step } from "./rules.ts";
import { type Act, type ChatMessage, type ChatRequest, type Model, textOf } from "./wire.ts";

/** Added to every answer, so that nobody mistakes the rehearsal for a model. */
export const REHEARSAL_MARK = "— rehearsal model";

/** A model that follows the first matching rule, one step per answer. */
export function createImproviser(rules: readonly Rule[]): Model {
  return (request) => {
    const start = request.messages.findLastIndex((message) => message.role === "user");
    const asked = spoken(request.messages[start]);
    const system = textOf(request.messages.find((message) => message.role === "system"));
    const since = request.messages.slice(start + 1);
    for (const { when, system: role, steps } of rules) {
      const found = [when].flat().map((pattern) => matches(pattern, asked));
      if (found.some((groups) => !groups) || (role !== undefined && !matches(role, system))) continue;
      if (!steps.every((step) => "say" in step || isOffered(step.call, request))) continue;
      return play(steps, [...(found.at(-1) ?? [])], since);
    }
    return said("I have no rule for this.");
  };
}

/** The next step, given the tools' answers to the earlier ones. */
function play(steps: readonly Step[], groups: readonly string[], since: readonly ChatMessage[]): Act {
  const results = since.filter(({ role }) => role === "tool").map((message) => plain(textOf(message)));
  const answers = since.filter(({ role }) => role === "assistant").length;
  const known = new Map<string, string>(groups.map((text, index) => [String(index), text ?? ""]));
  let played = 0;
  for (const step of steps) {
    if (step.if !== undefined && !known.get(step.if)) continue;
    if ("say" in step) return answers > played ? { say: "" } : said(fill(step.say, known));
    const result = results[played];
    if (result === undefined || answers <= played) return { call: [{ tool: step.call, args: filled(step.args, known) }] };
    played += 1;
    if (step.expect !== undefined && !matches(step.expect, result))
      return answers > played ? { say: "" } : said(`That was not done. This is what ${step.call} answered:\n\n${result}`);
    known.set("result", result);
    for (const [name, pattern] of Object.entries(step.keep)) known.set(name, matches(pattern, result)?.[1] ?? "");
  }
  return { say: "" };
}

function said(text: string): Act {
  return { say: `${text}\n\n${REHEARSAL_MARK}`.toWellFormed().match(/[\s\S]{1,24}/gu) ?? [] };
}

function filled(value: unknown, known: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return fill(value, known).toWellFormed();
  if (Array.isArray(value)) return value.map((item) => filled(item, known));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, known)]));
  return value;
}

const FORMS: Record<string, (text: string) => string> = { page: pageName, title: titleOf, place: placeOf };

/** `$1` is a group, `$result` the last result, `$name` a stored value; `$1:page` and the like transform it. */
function fill(text: string, known: ReadonlyMap<string, string>): string {
  return text.replace(/\$([a-z]+|\d)(?::(page|title|place))?/g, (whole, name: string, form?: string) => {
    const value = known.get(name) ?? (/\d/.test(name) ? "" : undefined);
    if (value === undefined) return whole;
    return form === undefined ? value : FORMS[form]!(value);
  });
}

/** Turns words for the current folder into a path. */
function placeOf(text: string): string {
  return /^(?:here|(?:this|the current) (?:folder|project|directory|repository))?$/i.test(text) ? "." : text;
}

/** A page name that is unique to a text, however similar others are. */
function pageName(text: string): string {
  const all = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = all.split(/[^a-z0-9]+/).filter((word) => word !== "");
  const slug = words.join("-").slice(0, 60).replace(/-$/, "");
  if (slug === all.trim().replace(/[.!]$/, "").replaceAll(" ", "-")) return slug;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return slug === "" ? hash : `${slug}-${hash}`;
}

function titleOf(text: string): string {
  const [line = ""] = text.split("\n", 1);
  const letters = Array.from(line);
  return letters.length <= 80 ? line : `${letters.slice(0, 79).join("")}…`;
}

function isOffered(tool: string, request: ChatRequest): boolean {
  return request.tools?.some((offered) => offered.function.name === tool) ?? false;
}

/** A tool result without the marks that label it as data. */
function plain(text: string): string {
  return text.replace(/^--- (?:data|begin|end) [0-9a-f]{12,16}\n?/gm, "").trim();
}

/** The user's own words, without the prefixes that the runtime and IO add. */
function spoken(message: ChatMessage | undefined): string {
  const text = textOf(message)
    .replace(/^<current_datetime>[^<]*<\/current_datetime>\s*/, "")
    .replace(/^\[via [a-z]+\] /, "");
  return plain(text);
}
