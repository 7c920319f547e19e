import type { Log } from "../lib/log.ts";
import { named } from "../lib/quoted.ts";
import { mcpArguments } from "../protocol/mcp-command.ts";
import type { State } from "../store/state.ts";
import type { ServerTool, ToolList } from "./connection.ts";
import type { Entry } from "./entries.ts";
import { plain } from "./results.ts";

/** What is stored of a server: the tools that a person, or the first start, accepted. */
interface StoredTools {
  hash: string;
  tools: ServerTool[];
}

export interface KnownToolsDeps {
  entry: () => Entry;
  state: State;
  clean: (text: string) => string;
  log: Log;
}

/** A server's accepted tools, and its current ones. */
export function createKnownTools({ entry, state, clean, log }: KnownToolsDeps) {
  const key = () => `mcp.tools:${entry().key}`;
  let accepted = keptTools();
  /** Undefined without a connection. */
  let current: ServerTool[] | undefined;
  let notes: string[] = [];

  function keptTools(): ServerTool[] | undefined {
    const text = state.get(key());
    const kept = text === undefined ? undefined : (JSON.parse(text) as StoredTools);
    return kept?.hash === entry().hash ? kept.tools : undefined;
  }

  function keep(tools: ServerTool[]): void {
    accepted = tools;
    state.set(key(), JSON.stringify({ hash: entry().hash, tools } satisfies StoredTools));
  }

  const isIn = (tools: readonly ServerTool[] | undefined, tool: ServerTool) =>
    tools?.some(({ hash }) => hash === tool.hash) === true;
  const withheld = () => (current ?? []).filter((tool) => !isIn(accepted, tool)).map(({ name }) => name);

  return {
    /** Accepts the first list without asking: it came with the server that a person chose. */
    learn({ tools, notes: told }: ToolList): void {
      current = tools;
      notes = told.map((note) => clean(plain(note)));
      if (accepted === undefined) keep(tools);
      const held = withheld();
      if (held.length > 0)
        log.warn("an MCP server changed its tools; they are withheld", { server: entry().name, tools: held.slice(0, 20) });
    },
    disconnected(): void {
      current = undefined;
    },
    isThere: (tool: ServerTool) => isIn(current, tool),
    /** The tools that a model may get; without a connection, all accepted ones. */
    offered(): ServerTool[] {
      const wanted = entry().config?.tools;
      const known = (accepted ?? []).filter(({ name }) => wanted?.includes(name) ?? true);
      return current === undefined ? known : known.filter((tool) => isIn(current, tool));
    },
    /** The names of tools that are new or changed since a person accepted them. */
    withheld,
    accept(): void {
      if (current) keep(current);
      else {
        accepted = undefined;
        state.delete(key());
      }
    },
    /** What the user should know about the tools. */
    describe(): string | null {
      const held = withheld();
      const names = held.slice(0, 10).map((name) => named(name, 60));
      const more = held.length > names.length ? ` and ${held.length - names.length} more` : "";
      const changed = `withheld, because they are new or changed since they were accepted: ${names.join(", ")}${more}; io mcp enable ${mcpArguments(entry())} shows and accepts them`;
      return [...(held.length > 0 ? [changed] : []), ...notes.slice(0, 5)].join("; ") || null;
    },
  };
}
