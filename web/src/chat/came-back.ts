/** Who finished what, parsed from the report of a task or run; undefined for any other text. */
export interface CameBack {
  who: string;
  what: string;
  how: string;
}

export function cameBack(text: string): CameBack | undefined {
  const [first = "", ...rest] = text.split("\n");
  if (first.startsWith("A swarm run")) {
    const issue = rest.find((line) => /^\s*issue: /i.test(line));
    return {
      who: "IO",
      what: issue?.slice(issue.indexOf(":") + 1).trim() ?? "",
      how: first.includes("interrupted") ? "interrupted" : "ended",
    };
  }
  const [head = "", agent] = first.split(" Agent: ");
  const [, how] = head.split(" has ended: ");
  if (agent === undefined || how === undefined) return undefined;
  const asked = rest.find((line) => line.startsWith("Asked for: "));
  return { who: agent.replace(/\.$/, ""), what: asked?.slice("Asked for: ".length) ?? "", how: how.replace(/\.$/, "") };
}
