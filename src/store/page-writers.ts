import { z } from "zod";
import type { Store } from "./open.ts";

/** One change of a page that a model made, and in whose work. */
export const PageChange = z.object({
  path: z.string(),
  change: z.enum(["written", "deleted"]),
  actor: z.string(),
  /** The message or task in whose turn it was. */
  owner: z.string(),
  at: z.string(),
});
export type PageChange = z.infer<typeof PageChange>;

/** Who wrote which page and when, from the journal of tool calls; what people write is not in it. */
export function createPageWriters({ db }: Store) {
  const select = db.prepare(
    `SELECT tool, actor, owner, args, created_at AS at FROM tool_calls INDEXED BY tool_calls_of_pages
     WHERE tool IN ('wiki_write', 'wiki_delete') AND state = 'done' AND created_at > ? ORDER BY created_at DESC LIMIT ?`,
  );
  return (since: string, limit: number): PageChange[] =>
    (select.all(since, limit) as Record<"tool" | "actor" | "owner" | "args" | "at", string>[]).flatMap(
      ({ tool, actor, owner, args, at }) => {
        const path = pathIn(args);
        return path === undefined ? [] : [{ path, change: tool === "wiki_write" ? "written" : "deleted", actor, owner, at }];
      },
    );
}
export type PageWriters = ReturnType<typeof createPageWriters>;

/** Long arguments are kept shortened and are no JSON any more, but begin with the path. */
function pathIn(args: string): string | undefined {
  const found = /"path":("(?:[^"\\]|\\.)*")/.exec(args)?.[1];
  return found === undefined ? undefined : z.string().safeParse(JSON.parse(found)).data;
}
