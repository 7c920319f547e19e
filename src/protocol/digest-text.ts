import type { Digest } from "./news.ts";

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function counted({ messages, tasks, runs }: Digest["done"], unproven = { tasks: 0, runs: 0 }): string {
  const ofThem = (number: number, words: string) => (number > 0 ? ` (${number} ${words})` : "");
  const parts = [
    ...(messages > 0 ? [count(messages, "message")] : []),
    ...(tasks > 0 ? [`${count(tasks, "task")}${ofThem(unproven.tasks, "unproven")}`] : []),
    ...(runs > 0 ? [`${count(runs, "run")}${ofThem(unproven.runs, "not approved")}`] : []),
  ];
  return parts.join(", ") || "nothing";
}

/** Whether a digest has nothing to report. */
export function isNothing({ done, failed, waiting, heldCount }: Digest): boolean {
  const all = [...Object.values(done), ...Object.values(failed), waiting.approvals, heldCount];
  return all.every((each) => each === 0);
}

/** A digest in a few lines. */
export function formatDigest(digest: Digest): string {
  const { since, done, failed, unproven, waiting, cost, held, heldCount } = digest;
  const from = `${since.slice(0, 16).replace("T", " ")} UTC`;
  if (isNothing(digest)) return `Nothing to report since ${from}.`;
  const tokens = (cost.inputTokens + cost.outputTokens).toLocaleString("en");
  const money = cost.money > 0 ? `, ${cost.money.toFixed(2)}${cost.partial ? " and more (some models have no price)" : ""}` : "";
  return [
    `Since ${from}:`,
    `Done: ${counted(done, unproven)}`,
    `Failed: ${counted(failed)}`,
    `Waiting for you: ${waiting.approvals === 0 ? "nothing" : `${count(waiting.approvals, "question")} (io approval list)`}`,
    `Cost: ${count(cost.calls, "model call")}, ${tokens} tokens${money}`,
    ...(heldCount > 0 ? [`Held back: ${heldCount}`] : []),
    ...held.map(({ conversation, text }) => `• ${conversation}: ${text}`),
    ...(heldCount > held.length ? [`• … and ${heldCount - held.length} more`] : []),
  ].join("\n");
}
