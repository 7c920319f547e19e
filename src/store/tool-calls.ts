import type { CallEnd } from "../protocol/calls.ts";
import type { Store } from "./open.ts";

export type ToolCallState = "begun" | CallEnd;

/** A tool call: its intent and its outcome. */
export interface ToolCall {
  seq: number;
  callId: string;
  sessionId: string;
  owner: string;
  /** The attempt of the owner's turn that made this call. */
  attempt: number;
  actor: string;
  tool: string;
  kind: "read" | "effect";
  /** JSON, redacted, truncated if long. */
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
  /** The latest call with that id or a suffixed one (`~2`, `~3` …). */
  latest(sessionId: string, callId: string): ToolCall | undefined;
  /**
   * Calls by earlier attempts of the same owner with the same tool and arguments that were not replayed yet, oldest first. A call
   * in another session is always earlier: an owner has one session at a time.
   */
  interrupted(of: EarlierThan & { argsHash: string }): ToolCall[];
  /** Effects of a tool started by an owner's earlier attempts and not replayed yet, oldest first. */
  effectsBefore(of: EarlierThan): ToolCall[];
  /** Stores the intent and returns its number. An effect's intent is on disk when this returns. */
  begin(call: NewToolCall): number;
  end(seq: number, kind: ToolCall["kind"], end: ToolCallEnd): void;
  /** Moves an earlier attempt's call to this attempt, to run it again or only to replay its result. */
  carryOver(call: ToolCall, attempt: number, state: ToolCallState): void;
  /** Replaces an earlier call by one that continues it. */
  supersede(earlier: number, call: NewToolCall, end: ToolCallEnd): void;
  /** All calls of an owner, without duplicates, oldest first. */
  callsOf(owner: string): ToolCall[];
  /** All effects that an owner started, whatever their outcome. */
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
  // A power cut right after may also lose the call's effect; without a stored end its outcome counts as unknown.
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
