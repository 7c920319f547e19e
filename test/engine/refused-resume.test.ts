import { expect, test } from "vitest";
import { resumeTrouble } from "../../src/engine/models/failures.ts";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { createGenerations } from "../../src/engine/sessions/generations.ts";
import type { TurnEvent } from "../../src/protocol/turns.ts";
import { startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { refusingRuntime } from "../support/refusing-runtime.ts";
import { sessionSpec } from "../support/wires.ts";

test.each([
  ["Request session.resume failed with message: Runtime is shutting down", "runtime"],
  ["backend is shutting down", "runtime"],
  ["Connection is closed.", "runtime"],
  ["Connection is disposed.", "runtime"],
  ["Pending response rejected since connection got disposed", "runtime"],
  ["The in-process runtime host is disposed.", "runtime"],
  ["Client not connected", "runtime"],
  ["Client is not connected. Call start() first.", "runtime"],
  ["write EPIPE", "runtime"],
  ["read ECONNRESET", "runtime"],
  ["Session file is corrupted (line 3)", "session"],
  ["Session not found: io-main-1", "session"],
  ["Failed to load session events: unexpected end", "session"],
  ["session filesystem provider request timed out after 30 s", "unknown"],
  ["Directory does not exist or cannot be accessed", "unknown"],
])("a session that is refused with %j has a trouble of: %s", (message, trouble) => {
  expect(resumeTrouble(message)).toBe(trouble);
});

test.each([
  [["Runtime is shutting down"], "lasting", 1],
  [["Pending response rejected since connection got disposed", "Connection is disposed."], "lasting", 1],
  [["it took too long, who knows why"], "lasting", 1],
  [["who knows why", "who knows why"], "lasting-g2", 2],
  [["Session file is corrupted (line 3)"], "lasting-g2", 2],
])(
  "after the refusals %j a conversation goes on in the session %s",
  { timeout: 60_000 },
  async (reasons, session, generation) => {
    const folder = temporaryFolder();
    const runtime = await refusingRuntime(folder);
    const model = await scriptedModel((_, index) => ({ say: `answer ${index}` }));
    const env = { ...process.env, HOME: folder, COPILOT_CLI_PATH: runtime.path };
    const first = await startEngine(folder, model.url, {}, { env });
    const spec = sessionSpec("lasting", folder);
    expect((await first.session(spec).run(turn("go on"))).text).toBe("answer 0");
    await first.stop();

    const second = await startEngine(folder, model.url, {}, { env });
    runtime.refuse(...reasons);
    // The same text again is a new question, whatever is tried on the way.
    expect(await second.session(spec).run(turn("go on", { owner: "m_2" }))).toMatchObject({ outcome: "done", text: "answer 1" });
    expect(runtime.left()).toBe(false);
    expect(createGenerations(folder).current("lasting").session).toBe(session);
    const shown = model.requests.at(-1)!.messages;
    expect(shown.filter(({ role }) => role === "user")).toHaveLength(generation === 1 ? 2 : 1);
    expect(shown.map(textOf).join("\n")).toContain("answer 0");
  },
);

const NO_ROOM = "Request session.resume failed with message: ENOSPC: no space left on device, write";

test.each([
  { cutOffs: 6, outcome: "done", text: "answer 1" },
  {
    cutOffs: 7,
    outcome: "failed",
    text: "",
    error: { code: "disk_full", message: "the disk is full. Free some space and try again." },
  },
])(
  "a turn that a quota cuts off $cutOffs times is $outcome, and the conversation keeps its session",
  {
    timeout: 60_000,
  },
  async ({ cutOffs, ...end }) => {
    const folder = temporaryFolder();
    const runtime = await refusingRuntime(folder);
    const model = await scriptedModel((_, index) => ({ say: `answer ${index}` }));
    const env = { ...process.env, HOME: folder, COPILOT_CLI_PATH: runtime.path };
    const first = await startEngine(folder, model.url, {}, { env });
    const spec = sessionSpec("lasting", folder);
    await first.session(spec).run(turn("remember this"));
    await first.stop();

    const second = await startEngine(folder, model.url, {}, { env, quotaMs: 10 });
    runtime.refuse(...Array<string>(cutOffs).fill(NO_ROOM));
    const retries: string[] = [];
    const onEvent = (event: TurnEvent) => void (event.kind === "retry" && retries.push(event.why));
    expect(await second.session(spec).run(turn("go on", { owner: "m_2", onEvent }))).toMatchObject(end);
    expect(runtime.left()).toBe(false);
    expect(retries).toEqual(Array(6).fill("the disk is full. Free some space and try again."));
    const last = await second.session(spec).run(turn("and now", { owner: "m_3" }));
    expect(last).toMatchObject({ outcome: "done", text: `answer ${cutOffs === 6 ? 2 : 1}` });
    expect(createGenerations(folder).current("lasting").session).toBe("lasting");
    expect(model.requests.at(-1)!.messages.map(textOf).join("\n")).toContain("remember this");
  },
);
