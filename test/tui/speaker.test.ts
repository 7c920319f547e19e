import { expect, onTestFinished, test } from "vitest";
import { type Client, connect } from "../../src/client/client.ts";
import { findDaemon } from "../../src/home/daemon-file.ts";
import { pathsOf } from "../../src/home/paths.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { lockHolder } from "../../src/store/lock.ts";
import { Composer } from "../../src/tui/composer.ts";
import { createKept } from "../../src/tui/input/kept.ts";
import { Questions } from "../../src/tui/questions.ts";
import { Speaker } from "../../src/tui/speaker.ts";
import { Transcript } from "../../src/tui/transcript/transcript.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { daemonOn } from "../support/squads.ts";
import { until } from "../support/until.ts";

/** The parts of a chat that send messages, without a screen. */
function speaking(client: Client, home: string) {
  const transcript = new Transcript({ links: false, now: () => 0 });
  const composer = new Composer({
    kept: createKept(home),
    cwd: home,
    client: () => client,
    commands: () => [],
    isBusy: () => false,
    onChange: () => undefined,
  });
  const nothing = () => undefined;
  const speaker = new Speaker({
    ...{ client: () => client, transcript: () => transcript, questions: new Questions(() => 0), conversation: () => "main" },
    ...{ ownCommands: () => [], cwd: home, reviews: { begin: async () => undefined } },
    ...{ composer, say: nothing, write: nothing, goTo: nothing, leave: nothing, onChange: nothing },
  });
  const say = (text: string) => {
    composer.write(text);
    speaker.submit("send");
  };
  return { transcript, composer, speaker, say };
}

test("words into a turn that has just ended are a message of their own", async () => {
  const daemon = await daemonOn(await scriptedModel(() => ({ say: "Good day." })));
  const paths = pathsOf({ IO_HOME: daemon.home });
  const client = connect({ paths, env: {}, daemon: () => findDaemon(paths, lockHolder) });
  const { id } = await client.request<Message>("POST", "/api/messages?wait=true", { text: "first", source: "tui" });
  const { transcript, composer, speaker, say } = speaking(client, daemon.home);
  // The event for its end has not arrived yet.
  transcript.hear({ id: 1, type: "message.started", data: { id, conversation: "main" } });
  say("second");
  expect(await speaker.arrived(20_000)).toEqual([]);
  const messages = await until("both to be done", async () => {
    const { items } = await client.request<{ items: Message[] }>("GET", "/api/messages");
    return items.filter(({ status }) => status === "done").length === 2 ? items : undefined;
  });
  expect(messages.map(({ text, steered }) => [text, steered.length])).toEqual([
    ["second", 0],
    ["first", 0],
  ]);
  expect(composer.text).toBe("");
});

test("what nobody has heard of when somebody leaves is told, and is not waited for for ever", async () => {
  const answers: (() => void)[] = [];
  onTestFinished(() => {
    for (const answer of answers) answer();
  });
  const silent = { request: () => new Promise((answer) => answers.push(() => answer({}))) } as unknown as Client;
  const { speaker, say } = speaking(silent, temporaryHome());
  say("into the void");
  expect(await speaker.arrived(20)).toEqual(["into the void"]);
  const heard = { id: "m", conversation: "main", text: "into the void", source: { channel: "tui" as const } };
  speaker.hear({ id: 1, type: "message.queued", data: heard });
  expect(await speaker.arrived(60_000)).toEqual([]);
});
