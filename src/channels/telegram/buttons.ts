import type { Message } from "../../protocol/messages.ts";
import type { Task } from "../../protocol/squads.ts";
import type { Button } from "./part.ts";

/** What a button does, in the few letters it can carry. */
export type Press = { does: "allow" | "deny" | "explain"; approval: string } | { does: "cancel" | "evidence"; task: string };

const LETTERS = { allow: "a", deny: "d", explain: "x", cancel: "c", evidence: "e" } as const;

export function dataOf(press: Press): string {
  return `${LETTERS[press.does]}:${"approval" in press ? press.approval : press.task}`;
}

export function pressOf(data: string): Press | undefined {
  const [, letter, id = ""] = /^([adxce]):([\w-]{1,60})$/.exec(data) ?? [];
  if (letter === "a" || letter === "d" || letter === "x")
    return { does: letter === "a" ? "allow" : letter === "d" ? "deny" : "explain", approval: id };
  if (letter === "c" || letter === "e") return { does: letter === "c" ? "cancel" : "evidence", task: id };
  return undefined;
}

/** Two answers that no thumb confuses: something harmless lies between them. */
export function approvalButtons(id: string, name = ""): Button[][] {
  return [
    [{ text: `✅ Allow${name}`, data: dataOf({ does: "allow", approval: id }) }],
    [{ text: name === "" ? "Why is this asked?" : `Why${name}?`, data: dataOf({ does: "explain", approval: id }) }],
    [{ text: `⛔ Deny${name}`, data: dataOf({ does: "deny", approval: id }) }],
  ];
}

export function taskButtons({ id, status, agent }: Pick<Task, "id" | "status" | "agent">): Button[] {
  const isOpen = status === "queued" || status === "running";
  return [
    ...(isOpen ? [{ text: `Cancel ${agent}'s task`, data: dataOf({ does: "cancel", task: id }) }] : []),
    { text: isOpen ? "Evidence so far" : `Evidence of ${agent}'s task`, data: dataOf({ does: "evidence", task: id }) },
  ];
}

const MAX_ROWS = 5;

/** Below an answer: the tasks that it set going, or that it tells the end of. */
export function replyButtons({ source, route }: Message, findTask: (id: string) => Task | undefined): Button[][] {
  const told = source.channel === "background" && source.about.startsWith("t_") ? [source.about] : [];
  return [...new Set([...route.tasks, ...told])]
    .slice(0, MAX_ROWS)
    .map(findTask)
    .filter((task) => task !== undefined)
    .map(taskButtons);
}
