import { z } from "zod";
import { withoutThinking } from "../../lib/thinking.ts";
import { isFrontend } from "../pipeline/conditions.ts";
import { MAX_TASKS } from "../pipeline/limits.ts";

/** One piece of work, which becomes one stream. */
export const SwarmTask = z.object({
  id: z.string(),
  /** The task as its stream is told it, word for word. */
  text: z.string(),
  acceptanceCriteria: z.array(z.string()),
  dependsOn: z.array(z.string()),
  /** Whether the list itself calls it frontend work, if it says. */
  declared: z.boolean().optional(),
  frontend: z.boolean(),
});
export type SwarmTask = z.infer<typeof SwarmTask>;

/** The text of the only task if nothing was split into tasks. */
export const WHOLE_TASK = {
  ofSpec: "Build what the specification says.",
  ofRequest: "Build what the request asks for.",
} as const;

const Words = z.string().trim().min(1);
const Many = z.union([z.array(z.union([Words, z.number().transform(String)])), Words.transform((one) => [one])]);
const Entry = z.union([
  Words.transform((text) => ({ text })),
  z
    .object({
      id: z.union([Words, z.number().transform(String)]).optional(),
      title: z.string().trim().optional(),
      name: z.string().trim().optional(),
      task: z.string().trim().optional(),
      description: z.string().trim().optional(),
      acceptanceCriteria: Many.nullish(),
      acceptance_criteria: Many.nullish(),
      dependsOn: Many.nullish(),
      depends_on: Many.nullish(),
      frontend: z.boolean().optional(),
    })
    .transform((entry, context) => {
      const text = [...new Set([entry.title ?? entry.name, entry.task, entry.description])].filter(Boolean).join("\n\n");
      if (text === "") context.addIssue({ code: "custom", message: 'needs a "title" or a "description"' });
      return {
        text,
        id: entry.id,
        acceptanceCriteria: entry.acceptanceCriteria ?? entry.acceptance_criteria ?? undefined,
        dependsOn: entry.dependsOn ?? entry.depends_on ?? undefined,
        declared: entry.frontend,
      };
    }),
]);
type Entry = {
  text: string;
  id?: string | undefined;
  acceptanceCriteria?: string[] | undefined;
  dependsOn?: string[] | undefined;
  declared?: boolean | undefined;
};

export type Decomposed = { tasks: SwarmTask[] } | { problem: string };

/** Reads the task list from a reply. If there is none, the problem is worded so that it can be sent back to the agent. */
export function readTasks(given: string, marker: string): Decomposed {
  if (given.length > MAX_REPLY) return { problem: `it is longer than ${MAX_REPLY} letters; say less` };
  const reply = withoutThinking(given);
  const { values, whole } = valuesIn(reply);
  const arrays = values.flatMap(({ value, ...place }) => {
    const list = listOf(value);
    return list === undefined ? [] : [{ list, isNamed: !Array.isArray(value), ...place }];
  });
  const readings = arrays.filter(({ list }) => list.some(isObject)).map(({ list }) => readList(list, marker));
  if (readings.length > 0) return readings.find((reading) => "tasks" in reading) ?? readings.at(-1)!;

  const [only, second] = arrays;
  if (only === undefined) {
    if (!whole) return { problem: "it holds no JSON array that is whole: a bracket is not closed" };
    const tasks = values.map(({ value }) => value);
    return tasks.length > 0 && tasks.every(hasTitle) ? readList(tasks, marker) : { problem: "it holds no JSON array of tasks" };
  }
  if (second !== undefined) return { problem: "it holds several JSON arrays, and none of them is a list of task objects" };
  const isClear = whole && values.length === 1 && (only.isNamed || standsAlone(reply, only) || isAnnounced(reply, only));
  if (only.list.length > 0 && only.list.every((entry) => typeof entry === "string") && !isClear)
    return { problem: "its array of strings stands amid other text, and may be something other than the list of tasks" };
  return readList(only.list, marker);
}

const LIST_NAME = /^(?:tasks?|task_?list|todos?)$/i;

/** A list, or the one under "tasks", because models that can only answer with an object wrap it, some of them twice. */
function listOf(value: unknown, isInner = false): unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (!isObject(value) || hasTitle(value)) return undefined;
  const [only, second] = Object.values(value);
  if (isObject(only) && second === undefined && !isInner) return listOf(only, true);
  const tasks: unknown = Object.entries(value).find(([name]) => LIST_NAME.test(name))?.[1];
  const isSentence = (entry: unknown) => typeof entry === "string" && SENTENCE.test(entry);
  return Array.isArray(tasks) && (tasks.some(isObject) || (tasks.length > 0 && tasks.every(isSentence))) ? tasks : undefined;
}

const SENTENCE = /\S\s+\S/;

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function hasTitle(value: unknown): boolean {
  return isObject(value) && "title" in value && typeof value.title === "string" && value.title.trim() !== "";
}

/** Whether a value has its lines to itself, apart from words that introduce it. */
function standsAlone(text: string, { start, end }: Position): boolean {
  const before = text.slice(text.lastIndexOf("\n", start) + 1, start);
  const [after = ""] = text.slice(end + 1).split("\n", 1);
  return /(?:^|:)\s*(?:`+\w*\s*)?$/.test(before) && /^[\s`]*$/.test(after);
}

/** Whether the words before a list of sentences in prose say that it is the task list. */
function isAnnounced(text: string, { start, list }: Position & { list: readonly unknown[] }): boolean {
  const before = text.slice(Math.max(0, start - 200), start);
  const sentence = before.slice(Math.max(...[".", "!", "?"].map((mark) => before.lastIndexOf(mark))) + 1);
  const isDenied = /\b(?:not|no|cannot|can't|without|instead)\b/i.test(sentence);
  return /\b(?:tasks|task list|json array)\b/i.test(sentence) && !isDenied && list.every((entry) => SENTENCE.test(String(entry)));
}

function readList(list: unknown[], marker: string): Decomposed {
  if (list.length === 0) return { problem: "the JSON array is empty" };
  if (list.length > MAX_TASKS) return { problem: `it lists ${list.length} tasks; join them into at most ${MAX_TASKS}` };
  const parsed = z.array(Entry).safeParse(list);
  if (!parsed.success) {
    const entry = Number(parsed.error.issues[0]?.path[0] ?? 0) + 1;
    return { problem: `entry ${entry} is neither a string nor a task object with a "title" or a "description"` };
  }
  const entries: Entry[] = parsed.data;
  const ids = entries.map((entry, index) => entry.id ?? `T${index + 1}`);
  // Without ids of their own, tasks are referred to by their numbers.
  const isNumbered = entries.every(({ id }) => id === undefined);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) return { problem: `two tasks have the id "${twice}"` };
  const tasks = entries.map((entry, index): SwarmTask => {
    const task = { text: entry.text, ...(entry.declared === undefined ? {} : { declared: entry.declared }) };
    return {
      ...task,
      id: ids[index]!,
      acceptanceCriteria: entry.acceptanceCriteria ?? [],
      dependsOn: [...new Set(entry.dependsOn ?? [])].map((id) => (isNumbered && /^\d{1,4}$/.test(id) ? `T${id}` : id)),
      frontend: isFrontend(task, marker),
    };
  });
  for (const task of tasks) {
    const unknown = task.dependsOn.find((id) => !ids.includes(id) || id === task.id);
    if (unknown !== undefined)
      return { problem: `task "${task.id}" depends on "${unknown}", which is not another task of the list` };
  }
  const circle = findCircle(tasks);
  return circle ? { problem: `the tasks ${circle.join(", ")} wait for each other in a circle` } : { tasks };
}

function findCircle(tasks: readonly SwarmTask[]): string[] | undefined {
  const free = new Set<string>();
  for (;;) {
    const next = tasks.filter((task) => !free.has(task.id) && task.dependsOn.every((id) => free.has(id)));
    if (next.length === 0) break;
    for (const task of next) free.add(task.id);
  }
  const stuck = tasks.filter((task) => !free.has(task.id)).map((task) => task.id);
  return stuck.length > 0 ? stuck : undefined;
}

/** How many brackets of a reply are tried, and how many may stay open, before the rest is ignored. */
const MAX_TRIES = 300;
const MAX_OPEN = 20;
const MAX_REPLY = 200_000;

/** Where a value begins and ends in a text. */
interface Position {
  start: number;
  end: number;
}

/**
 * The outermost JSON lists and objects in a text, in prose or fenced. `whole` is false if a bracket stays open: what is inside a
 * truncated list is only a part of it.
 */
function valuesIn(text: string): { values: (Position & { value: unknown })[]; whole: boolean } {
  const values: (Position & { value: unknown })[] = [];
  const bracket = /[[{]/g;
  let open = 0;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const start = bracket.exec(text)?.index;
    if (start === undefined) return { values, whole: open === 0 };
    const end = closing(text, start);
    if (end === undefined) {
      open += 1;
      if (!isProse(text, start) || open > MAX_OPEN) break;
      continue;
    }
    const value = tryParse(text.slice(start, end + 1));
    if (value !== undefined) values.push({ value, start, end });
    bracket.lastIndex = end + 1;
  }
  return { values, whole: false };
}

/** Whether an open bracket is just prose, judged by what follows it. */
function isProse(text: string, start: number): boolean {
  return /^\[\s{0,9}[^\s[{"\]]/.test(text.slice(start, start + 12));
}

function closing(text: string, start: number): number | undefined {
  const open: string[] = [];
  const marks = /["[\]{}]|(?<=[\s,[\]{}])\/[/*]/g;
  marks.lastIndex = start;
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const [char] = mark;
    if (char.length === 2) marks.lastIndex = endOfComment(text, mark.index);
    else if (char === '"') {
      const end = endOfString(text, mark.index);
      if (end === undefined) return undefined;
      marks.lastIndex = end + 1;
    } else if (char === "[") open.push("]");
    else if (char === "{") open.push("}");
    else {
      if (open.pop() !== char) return undefined;
      if (open.length === 0) return mark.index;
    }
  }
  return undefined;
}

function endOfComment(text: string, start: number): number {
  const end = text[start + 1] === "/" ? text.indexOf("\n", start) : text.indexOf("*/", start) + 2;
  return end < start + 2 ? text.length : end;
}

function endOfString(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at;
  }
  return undefined;
}

function tryParse(text: string): unknown {
  const plain = withoutComments(text);
  for (const candidate of [text, plain, withoutTrailingCommas(plain)])
    try {
      return JSON.parse(candidate);
    } catch {
      // Not JSON: brackets are common in prose.
    }
  return undefined;
}

/** JSON without the comments that JavaScript allows and models write. */
function withoutComments(text: string): string {
  const parts: string[] = [];
  let from = 0;
  const marks = /"|(?<=[\s,[\]{}])\/[/*]/g;
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const end = mark[0] === '"' ? endOfString(text, mark.index) : undefined;
    if (end !== undefined) marks.lastIndex = end + 1;
    else if (mark[0] === '"') break;
    else {
      parts.push(text.slice(from, mark.index));
      from = endOfComment(text, mark.index);
      marks.lastIndex = from;
    }
  }
  return parts.join("") + text.slice(from);
}

/** JSON with a comma after a last entry, which JavaScript and Python allow and models write. */
function withoutTrailingCommas(text: string): string {
  const parts: string[] = [];
  let from = 0;
  const marks = /[",]/g;
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const { index } = mark;
    if (mark[0] === '"') {
      const end = endOfString(text, index);
      if (end === undefined) return text;
      marks.lastIndex = end + 1;
    } else if ("]}".includes(text.slice(index + 1, index + 200).trimStart()[0] ?? " ")) {
      parts.push(text.slice(from, index));
      from = index + 1;
    }
  }
  return parts.join("") + text.slice(from);
}
