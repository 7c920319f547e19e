import { expect, test } from "vitest";
import type { AcpAccess } from "../../src/channels/acp/access.ts";
import { createPrompts } from "../../src/channels/acp/prompts.ts";
import { createQuestions } from "../../src/channels/acp/questions.ts";
import { ExitCode, UserError } from "../../src/lib/errors.ts";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { until } from "../support/until.ts";

const APPROVAL = {
  ...{ id: "abcde", kind: "call", owner: { kind: "message", id: "m_1" }, conversation: "acp-1", tool: "shell" },
  ...{ summary: "touch x", command: "touch x", path: null, diff: null, cwd: null, reason: null, rule: null },
  ...{ scopes: [], state: "waiting" },
} as unknown as Approval;

/** A person in an editor who allows everything, and a daemon whose answers to decisions are given. */
async function allowed(answers: (Error | undefined)[]) {
  const tried: unknown[] = [];
  const notes: string[] = [];
  const said: string[] = [];
  const request: AcpAccess["request"] = async <T>(method: string, path: string, body?: unknown) => {
    tried.push([method, path, body]);
    const error = answers[tried.length - 1];
    if (error) throw error;
    return undefined as T;
  };
  const questions = createQuestions({
    access: { request, note: (text) => void notes.push(text) },
    client: { request: async () => ({ outcome: { outcome: "selected", optionId: "allow-once" } }) as never },
    conversation: "acp-1",
    folder: "/project",
    callOf: () => undefined,
    say: async (text) => void said.push(text),
  });
  await questions.ask(APPROVAL);
  return { tried, notes, said };
}
const away = new UserError("The daemon does not answer.", { exitCode: ExitCode.unreachable });
const DECISION = ["POST", "/api/approvals/abcde", { decision: "allow", scope: "once" }];

test("an answer that a person gives in the editor while the daemon restarts counts once it is back", async () => {
  const { tried, notes, said } = await allowed([away, away, undefined]);
  await until("the third try", () => tried.length === 3 || notes.length > 0);
  expect(tried).toEqual([DECISION, DECISION, DECISION]);
  expect([notes, said]).toEqual([[], []]);
});

test("an answer to a question that somebody else has decided is not given again", async () => {
  const { tried, notes, said } = await allowed([new UserError("It is decided.", { code: "conflict" })]);
  await until("the note", () => notes.length > 0);
  expect(tried).toEqual([DECISION]);
  expect(notes[0]).toContain("The answer to abcde did not count: ");
  expect(said).toEqual([]);
});

/** A prompt whose daemon is gone, in an editor that knows whether somebody stopped it and whether another can be started. */
function promptWithoutDaemon(wasStopped: boolean, ready: () => Promise<void> = async () => {}) {
  const request = async <T>() => ({ id: "m_1" }) as T;
  const upload = () => Promise.reject(new Error("nothing is attached"));
  const events = (): never => {
    throw new Error("nobody follows");
  };
  const prompts = createPrompts({
    access: { request, upload, events, ready, wasStopped: () => wasStopped, note: () => {} },
    conversation: "acp-1",
    feed: { isConnected: () => true, open: async () => {}, hold: (work) => work() },
    keep: async () => {},
    killedMs: 20,
  });
  const back = new AbortController();
  const answer = prompts.ask(async () => "hello", [], new AbortController().signal);
  answer.catch(() => undefined);
  return { prompts, back, answer };
}

test("a prompt whose daemon was stopped ends with what to do; one whose daemon is back in time goes on", async () => {
  const stopped = promptWithoutDaemon(true);
  await stopped.prompts.lost(stopped.back.signal);
  await expect(stopped.answer).rejects.toMatchObject({ code: -32603, message: expect.stringContaining('"io start"') });

  const restarted = promptWithoutDaemon(true);
  restarted.back.abort();
  await restarted.prompts.lost(restarted.back.signal);
  await until("the message to be sent", () => restarted.prompts.isOwn("m_1"));
  restarted.prompts.finished({ id: "m_1", status: "done" } as Message);
  expect(await restarted.answer).toEqual({ stopReason: "end_turn" });
});

test("a prompt whose daemon was killed and cannot be started ends with the reason", async () => {
  const why = new UserError("config.json: provider: is missing");
  const killed = promptWithoutDaemon(false, () => Promise.reject(why));
  await killed.prompts.lost(killed.back.signal);
  await expect(killed.answer).rejects.toMatchObject({ code: -32603, message: why.message });
});
