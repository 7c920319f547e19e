import type { Message } from "../../protocol/messages.ts";
import type { Run } from "../../protocol/runs.ts";
import type { Task } from "../../protocol/squads.ts";
import type { Button } from "./part.ts";

/** What a button does, encoded in the few bytes it can carry. */
export type Press =
  | { does: "allow" | "deny" | "explain"; approval: string }
  | { does: "cancel" | "evidence"; task: string }
  | { does: "propose"; work: string }
  | { does: "keep" | "change" | "revert"; review: string };

const LETTERS = {
  ...{ allow: "a", deny: "d", explain: "x", cancel: "c", evidence: "e", propose: "p" },
  ...{ keep: "k", change: "h", revert: "r" },
} as const;
const REVIEWS = { k: "keep", h: "change", r: "revert" } as const;

export function dataOf(press: Press): string {
  return `${LETTERS[press.does]}:${subjectOf(press)}`;
}

function subjectOf(press: Press): string {
  if ("approval" in press) return press.approval;
  if ("task" in press) return press.task;
  return "work" in press ? press.work : press.review;
}

export function pressOf(data: string): Press | undefined {
  const [, letter, id = ""] = /^([adxcepkhr]):([\w-]{1,60})$/.exec(data) ?? [];
  if (letter === "a" || letter === "d" || letter === "x")
    return { does: letter === "a" ? "allow" : letter === "d" ? "deny" : "explain", approval: id };
  if (letter === "c" || letter === "e") return { does: letter === "c" ? "cancel" : "evidence", task: id };
  if (letter === "p") return { does: "propose", work: id };
  if (letter === "k" || letter === "h" || letter === "r") return { does: REVIEWS[letter], review: id };
  return undefined;
}

/** The harmless middle button keeps thumbs from confusing the two answers. */
export function approvalButtons(id: string, name = ""): Button[][] {
  return [
    [{ text: `✅ Allow${name}`, data: dataOf({ does: "allow", approval: id }) }],
    [{ text: name === "" ? "Why is this asked?" : `Why${name}?`, data: dataOf({ does: "explain", approval: id }) }],
    [{ text: `⛔ Deny${name}`, data: dataOf({ does: "deny", approval: id }) }],
  ];
}

/** Opens a pull request for the branch of a run or task. */
const proposeButton = (work: string): Button => ({ text: "Open a pull request", data: dataOf({ does: "propose", work }) });

/** The buttons below a run that has a result. */
export function runButtons({ id, status, outcome, branch }: Pick<Run, "id" | "status" | "outcome" | "branch">): Button[] {
  return status === "done" && branch !== null && outcome !== "unchanged" ? [proposeButton(id)] : [];
}

export function taskButtons({ id, status, agent, evidence }: Pick<Task, "id" | "status" | "agent" | "evidence">): Button[] {
  const isOpen = status === "queued" || status === "running";
  return [
    ...(isOpen ? [{ text: `Cancel ${agent}'s task`, data: dataOf({ does: "cancel", task: id }) }] : []),
    { text: isOpen ? "Evidence so far" : `Evidence of ${agent}'s task`, data: dataOf({ does: "evidence", task: id }) },
    ...(!isOpen && evidence?.branch !== undefined ? [proposeButton(id)] : []),
  ];
}

const MAX_ROWS = 5;

/** The buttons below an answer: for the tasks it started, and for the task or run whose end it reports. */
export function replyButtons(
  { source, route }: Message,
  { findTask, findRun }: { findTask: (id: string) => Task | undefined; findRun: (id: string) => Run | undefined },
): Button[][] {
  const told = source.channel === "background" && source.about.startsWith("t_") ? [source.about] : [];
  const run = source.channel === "background" && source.about.startsWith("r_") ? findRun(source.about) : undefined;
  const ofRun = run ? [runButtons(run)].filter((row) => row.length > 0) : [];
  const ofTasks = [...new Set([...route.tasks, ...told])]
    .slice(0, MAX_ROWS)
    .map(findTask)
    .filter((task) => task !== undefined)
    .map(taskButtons);
  return [...ofRun, ...ofTasks];
}
