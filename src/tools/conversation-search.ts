import { z } from "zod";
import { named, oneLine, quoted } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import type { MessageSearch, SaidHit } from "../store/message-search.ts";
import { type Tool, tool } from "./tool.ts";

const LIMIT = 20;
const SNIPPET = 400;

/** Searches everything that was said, including what no session contains any more. */
export function conversationSearch(search: MessageSearch): Tool {
  return tool({
    name: "conversation_search",
    description: "Find any text in what was said and answered before, however long ago; newest first.",
    schema: z.strictObject({
      query: z.string().trim().min(1).max(500),
      conversation: z.string().min(1).optional().describe("only in this one"),
    }),
    kind: "read",
    deadlineMs: 30_000,
    run: async ({ query, conversation }, { owner }) => {
      const hits = await search({ query, conversation, limit: LIMIT + 1, except: owner, tasks: true });
      if (hits.length === 0) return `Nothing that was said holds ${quoted(query, 200)}. Try fewer or other words.`;
      const more = hits.length > LIMIT ? ["There is more that is older; ask more narrowly."] : [];
      return [asData(hits.slice(0, LIMIT).map(lineOf).join("\n")), ...more].join("\n");
    },
  });
}

function lineOf({ kind, id, conversation, by, createdAt, snippet }: SaidHit): string {
  const who = by === "asked" ? (kind === "task" ? "asked of an agent" : "the user") : kind === "task" ? "the agent" : "IO";
  const where = [...(conversation === null ? [] : [`in ${named(conversation, 80)}`]), `${kind} ${id}`].join(", ");
  return `- ${createdAt.slice(0, 16).replace("T", " ")}, ${who} (${where}): ${oneLine(snippet, SNIPPET)}`;
}
