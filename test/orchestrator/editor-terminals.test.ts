import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createEditorTerminals } from "../../src/orchestrator/editor-terminals.ts";

const COMMAND = { program: "/bin/sh", args: ["-c", "true"], cwd: "/tmp", env: {} };
const NOBODY = { stop: true };

function setUp() {
  const asked: string[] = [];
  const gone: string[] = [];
  const terminals = createEditorTerminals({
    announce: (event) => void (event.type === "editor.asked" && asked.push(event.data.ask)),
    onGone: (conversation) => gone.push(conversation),
    ...{ patienceMs: 60, silenceMs: 60, stopMs: 60 },
  });
  const abort = new AbortController();
  const printed: string[] = [];
  const call = { message: "m_1", callId: "c_1", signal: abort.signal, onOutput: (text: string) => printed.push(text) };
  const begun = terminals.run("main", COMMAND, call);
  const say = (report = {}) => terminals.report("main", asked[0]!, report);
  return { terminals, asked, gone, abort, printed, begun, say };
}

test("a command is given to one process, once, and to none of another conversation", async () => {
  const { terminals, asked, printed, begun, say } = setUp();
  expect(terminals.report("other", asked[0]!, {})).toEqual(NOBODY);
  expect(say()).toEqual({ stop: false, run: COMMAND });
  expect(say()).toEqual({ stop: false });
  for (const piece of ["a", "b", "c"]) {
    // Together, these take longer than the command may be silent.
    await sleep(30);
    expect(say({ printed: piece })).toEqual({ stop: false });
  }
  const end = { how: "exited", code: 0, output: "abc", isCut: false };
  say({ end });
  expect(await begun).toEqual(end);
  expect(printed).toEqual(["a", "b", "c"]);
  expect(say()).toEqual(NOBODY);
});

test("a command that nobody takes has not run, and nobody gets it later", async () => {
  const { gone, begun, say } = setUp();
  expect(await begun).toEqual({ how: "unanswered" });
  expect(gone).toEqual(["main"]);
  expect(say()).toEqual(NOBODY);

  const stopped = setUp();
  stopped.abort.abort();
  expect(await stopped.begun).toEqual({ how: "unanswered" });
  expect(stopped.say()).toEqual(NOBODY);
  expect(stopped.gone).toEqual([]);
});

test("of a process that is silent, or does not stop, nobody knows how its command ended", async () => {
  const silent = setUp();
  silent.say();
  expect(await silent.begun).toMatchObject({ how: "lost" });
  expect(silent.gone).toEqual(["main"]);

  const deaf = setUp();
  deaf.say();
  deaf.abort.abort();
  const talk = setInterval(() => expect(deaf.say()).toMatchObject({ stop: true }), 10);
  expect(await deaf.begun).toMatchObject({ how: "lost" });
  clearInterval(talk);
});
