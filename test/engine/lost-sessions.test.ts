import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { sessionLog } from "../../src/engine/sessions/recover.ts";
import { startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { sessionSpec } from "../support/wires.ts";

const DAMAGE: [string, (log: string) => void][] = [
  ["is gone", (log) => rmSync(dirname(log), { recursive: true })],
  ["is empty", (log) => writeFileSync(log, "")],
  ["is something else", (log) => writeFileSync(log, "PK\u0003\u0004 this is no log\n{}\n")],
  ["has lost its beginning", (log) => writeFileSync(log, readFileSync(log, "utf8").split("\n").slice(2).join("\n"))],
  ["has a damaged line", (log) => writeFileSync(log, readFileSync(log, "utf8").replace('"user.message"', '"user.mess'))],
];

test.each(DAMAGE)("a conversation whose session %s goes on, and the model is told what was said before", async (_, damage) => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "ok" }));
  const spec = { ...sessionSpec("lost", folder), handover: () => "User: my boat is called Ada" };
  const first = await startEngine(folder, model.url);
  expect(await first.session({ ...spec, handover: () => "" }).run(turn("my boat is called Ada"))).toMatchObject({
    outcome: "done",
  });
  await first.stop();
  damage(sessionLog(folder, "lost"));

  const second = await startEngine(folder, model.url);
  for (const words of ["what is it called?", "and again?"]) {
    expect(await second.session(spec).run(turn(words))).toMatchObject({ outcome: "done", text: "ok" });
    const said = model.requests.at(-1)!.messages.map(textOf).join("\n");
    expect(said).toContain("my boat is called Ada");
    expect(said).toContain(words);
  }
  await second.stop();
  const third = await startEngine(folder, model.url);
  expect(await third.session(spec).run(turn("after a restart?"))).toMatchObject({ outcome: "done" });
  const said = model.requests.at(-1)!.messages.map(textOf).join("\n");
  expect(said).toContain("my boat is called Ada");
  expect(said).toContain("and again?");
  await third.deleteSession("lost");
});
