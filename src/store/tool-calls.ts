import type { CallEnd } from "../protocol/calls.ts";
import type { Store } from "./open.ts";

export type ToolCallState = "begun" | CallEnd;

/** One call of a tool: what was meant, and what came of it. */
export interface ToolCall {
  seq: number;
  callId: string;
  sessionId: string;
  owner: string;
  /** Which try of the owner's turn made this call. */
  attempt: number;
  actor: string;
  tool: string;
  kind: "read" | "effect";
  /** JSON, secrets removed, shortened if long. */
  args: string;
  argsHash: string;
  state: ToolCallState;
  result: string | null;
  resultHash: string | null;
  durationMs: number | null;
  createdAt: string;
}

export type NewToolCall = Omit<ToolCall, "seq" | "result" | "resultHash" | "durationMs">;
export interface ToolCallEnd {
  state: CallEnd;
  result: string;
  resultHash: string;
  durationMs: number;
}

export type EarlierThan = Pick<ToolCall, "owner" | "attempt" | "sessionId" | "tool">;

/** The journal of tool calls: intent before, outcome after. */
export interface ToolCalls {
  find(sessionId: string, callId: string): ToolCall | undefined;
  /** The latest call of that id, or of one that was made from it by `~2`, `~3` … */
  latest(sessionId: string, callId: string): ToolCall | undefined;
  /**
   * What earlier attempts of the same owner did with the same tool and arguments and nobody has been told again, oldest first.
   * Whatever was done in another session is earlier: an owner has one at a time.
   */
  interrupted(of: EarlierThan & { argsHash: string }): ToolCall[];
  /** The effects that earlier attempts of an owner began with a tool and nobody has been told again, oldest first. */
  effectsBefore(of: EarlierThan): ToolCall[];
  /** Writes the intent and answers with its number. An effect's is on disk when this returns. */
  begin(call: NewToolCall): number;
  end(seq: number, kind: ToolCall["kind"], end: ToolCallEnd): void;
  /** Makes a call of an earlier attempt one of this attempt: begun anew, or only told again. */
  carryOver(call: ToolCall, attempt: number, state: ToolCallState): void;
  /** Puts one call in the place of an earlier one, whose outcome it carries on. */
  supersede(earlier: number, call: NewToolCall, end: ToolCallEnd): void;
  /** Every call of an owner, each counted once, oldest first. */
  callsOf(owner: string): ToolCall[];
  /** The effects of an owner that were begun, whatever came of them. */
  effectsOf(owner: string): ToolCall[];
}

const COLUMNS = `seq, call_id AS callId, session_id AS sessionId, owner, life AS attempt, actor, tool, kind, args,
  args_hash AS argsHash, state, result, result_hash AS resultHash, duration_ms AS durationMs, created_at AS createdAt`;

export function createToolCalls(store: Store): ToolCalls {
  const { db } = store;
  const select = (where: string) => db.prepare(`SELECT ${COLUMNS} FROM tool_calls WHERE ${where}`);
  const byId = select("session_id = ? AND call_id = ?");
  const family = select(`seq = (SELECT MAX(seq) FROM (
    SELECT seq FROM tool_calls WHERE session_id = ?1 AND call_id = ?2
    UNION ALL SELECT seq FROM tool_calls WHERE session_id = ?1 AND call_id >= ?2 || '~' AND call_id < ?2 || '~:'))`);
  const earlier = "owner = ? AND (life < ? OR session_id <> ?) AND tool = ? AND replayed = 0 AND state <> 'refused'";
  const open = select(`${earlier} AND args_hash = ? ORDER BY seq`);
  const before = select(`${earlier} AND kind = 'effect' ORDER BY seq`);
  const all = select("owner = ? AND replayed = 0 ORDER BY seq");
  const effects = select("owner = ? AND replayed = 0 AND kind = 'effect' AND state <> 'refused' ORDER BY seq");
  const insert = db.prepare(
    `INSERT INTO tool_calls (call_id, session_id, owner, life, actor, tool, kind, args, args_hash, state, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = db.prepare("UPDATE tool_calls SET state = ?, result = ?, result_hash = ?, duration_ms = ? WHERE seq = ?");
  const carry = db.prepare("UPDATE tool_calls SET life = ?, state = ? WHERE seq = ?");
  const replayed = db.prepare("UPDATE tool_calls SET replayed = 1, state = ? WHERE seq = ?");

  const begin = (call: NewToolCall): number => {
    const write = () =>
      Number(
        insert.run(
          call.callId,
          call.sessionId,
          call.owner,
          call.attempt,
          call.actor,
          call.tool,
          call.kind,
          call.args,
          call.argsHash,
          call.state,
          call.createdAt,
        ).lastInsertRowid,
      );
    return call.kind === "effect" ? write() : store.soft(write);
  };
  // A power cut in the next moment may have taken what a call did as well: without its end it is one of which nobody knows.
  const end: ToolCalls["end"] = (seq, kind, { state, result, resultHash, durationMs }) => {
    const write = () => update.run(state, result, resultHash, durationMs, seq);
    if (kind === "effect") store.soon(write);
    else store.soft(write);
  };

  return {
    find: (sessionId, callId) => byId.get(sessionId, callId) as ToolCall | undefined,
    latest: (sessionId, callId) => family.get(sessionId, callId) as ToolCall | undefined,
    interrupted: ({ owner, attempt, sessionId, tool, argsHash }) =>
      open.all(owner, attempt, sessionId, tool, argsHash) as unknown as ToolCall[],
    effectsBefore: ({ owner, attempt, sessionId, tool }) => before.all(owner, attempt, sessionId, tool) as unknown as ToolCall[],
    begin,
    end,
    carryOver: ({ seq }, attempt, state) => void carry.run(attempt, state, seq),
    supersede(earlier, call, outcome) {
      store.transaction(() => {
        replayed.run(outcome.state, earlier);
        end(begin(call), call.kind, outcome);
      });
    },
    callsOf: (owner) => all.all(owner) as unknown as ToolCall[],
    effectsOf: (owner) => effects.all(owner) as unknown as ToolCall[],
  };
}
