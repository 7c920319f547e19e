import { z } from "zod";
import type { EditChannel, PageChange } from "../protocol/pages.ts";
import type { Store } from "./open.ts";

/** How many edits by people are kept. */
const KEPT = 10_000;
/** How many changes by models are searched for one page. */
const LOOKED_THROUGH = 5_000;

export interface ChangesWanted {
  since: string;
  limit: number;
  by?: PageChange["by"] | undefined;
  path?: string | undefined;
}

interface CallRow extends Record<"tool" | "actor" | "owner" | "args" | "at", string> {
  duration: number | null;
  conversation: string | null;
  said: string | null;
}

/**
 * Who wrote which page and when: models from the journal of tool calls, people from edits recorded by the API. A person who
 * edits a page has reviewed it.
 */
export function createPageWriters({ db }: Store, onLooked: (path: string) => void = () => undefined) {
  const calls = db.prepare(
    `SELECT tool, actor, owner, args, created_at AS at, duration_ms AS duration,
       coalesce((SELECT conversation FROM messages WHERE messages.id = owner),
         (SELECT json_extract(origin, '$.conversation') FROM agent_tasks WHERE agent_tasks.id = owner)) AS conversation,
       substr(coalesce((SELECT text FROM messages WHERE messages.id = owner),
         (SELECT description FROM agent_tasks WHERE agent_tasks.id = owner)), 1, 200) AS said
     FROM tool_calls INDEXED BY tool_calls_of_pages
     WHERE tool IN ('wiki_write', 'wiki_delete') AND state = 'done' AND created_at > ? ORDER BY created_at DESC LIMIT ?`,
  );
  const edits = db.prepare("SELECT path, change, channel, at FROM page_edits WHERE at > ? ORDER BY at DESC, seq DESC LIMIT ?");
  const words = db.prepare(
    `SELECT coalesce((SELECT text FROM messages WHERE id = ?1), (SELECT description FROM agent_tasks WHERE id = ?1)) AS text`,
  );
  const insert = db.prepare("INSERT INTO page_edits (path, change, channel, at) VALUES (?, ?, ?, ?)");
  const forget = db.prepare("DELETE FROM page_edits WHERE seq <= ? - ?");

  const byAgents = (since: string, limit: number): PageChange[] =>
    (calls.all(since, limit) as unknown as CallRow[]).flatMap(
      ({ tool, actor, owner, args, at, duration, conversation, said }) => {
        const path = pathIn(args);
        if (path === undefined) return [];
        const until = new Date(Date.parse(at) + (duration ?? 0)).toISOString();
        const change = tool === "wiki_write" ? ("written" as const) : ("deleted" as const);
        return [{ path, change, by: "agent" as const, actor, owner, conversation, said, channel: null, at, until }];
      },
    );
  const byPeople = (since: string, limit: number): PageChange[] =>
    (edits.all(since, limit) as unknown as Pick<PageChange, "path" | "change" | "channel" | "at">[]).map((edit) => ({
      ...edit,
      ...{ by: "person", actor: "person", owner: null, conversation: null, said: null, until: edit.at },
    }));

  return {
    /** The newest first. */
    changes({ since, limit, by, path }: ChangesWanted): PageChange[] {
      const most = path === undefined ? limit : Math.max(limit, LOOKED_THROUGH);
      const all = [...(by === "person" ? [] : byAgents(since, most)), ...(by === "agent" ? [] : byPeople(since, most))];
      const wanted = path === undefined ? all : all.filter((each) => nameOf(each.path) === nameOf(path));
      return wanted.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)).slice(0, limit);
    },
    /** The text of a message or task; undefined if it is gone. */
    saidIn: (owner: string): string | undefined => (words.get(owner) as { text: string | null } | undefined)?.text ?? undefined,
    /** Records that a person changed a page. */
    edited(path: string, change: PageChange["change"], { channel, at }: { channel: EditChannel; at: string }): void {
      const { lastInsertRowid } = insert.run(path, change, channel, at);
      onLooked(path);
      forget.run(lastInsertRowid, KEPT);
    },
  };
}
export type PageWriters = ReturnType<typeof createPageWriters>;

/** Normalizes a page's path: `pages/` and `.md` are optional. */
export const nameOf = (path: string) => path.replace(/^\/?(?:pages\/)?/, "").replace(/\.md$/, "");

/** Long arguments are stored truncated, so they are not valid JSON, but they begin with the path. */
function pathIn(args: string): string | undefined {
  const found = /"path":("(?:[^"\\]|\\.)*")/.exec(args)?.[1];
  return found === undefined ? undefined : z.string().safeParse(JSON.parse(found)).data;
}
