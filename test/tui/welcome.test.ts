import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createImproviser } from "../../src/engine/rehearsal/improvise.ts";
import { loadRules } from "../../src/engine/rehearsal/rules.ts";
import type { Status } from "../../src/protocol/api.ts";
import { welcomeLines } from "../../src/tui/welcome.ts";
import { temporaryFolder } from "../support/home.ts";

const statusOf = (kind: string) =>
  ({ version: "1.2.3", mode: "auto", engine: { kind, state: "ready", model: "any", notes: [] } }) as unknown as Status;
const welcome = (folder: string | null, { isFirst = true, kind = "provider" } = {}) =>
  welcomeLines({
    ...{ status: statusOf(kind), url: "http://127.0.0.1:1", mode: "auto", conversation: "app", folder, env: {}, isFirst },
  }).join("\n");

test("the first chat in a project names three things to try, on a file that is there", () => {
  const folder = temporaryFolder();
  expect(welcome(folder)).toContain(
    'Try: "What is this project, and how is it tested?" · "What would you mend here first?" · /diff',
  );
  writeFileSync(join(folder, "README.rst"), "");
  expect(welcome(folder)).toContain('"Look at @README.rst and mend what is wrong."');
  expect(welcome(folder)).toContain(`Conversation app, in ${folder}`);
  expect(welcome(folder, { isFirst: false })).not.toContain("Try:");
  expect(welcome(null)).toContain('Try: "What can you do?"');
});

test("on the rehearsal model the first chat suggests nothing that the model has no scene for", () => {
  const rules = loadRules(temporaryFolder());
  const play = createImproviser(rules);
  const called = rules.flatMap(({ steps }) => steps.flatMap((step) => ("call" in step ? [step.call] : [])));
  const tools = called.map((name) => ({ type: "function", function: { name } }));
  for (const folder of [null, temporaryFolder()]) {
    const tries = /^Try: (.+)$/m.exec(welcome(folder, { kind: "rehearsal" }))?.[1]?.split(" · ") ?? [];
    expect(tries).toHaveLength(3);
    for (const text of tries.flatMap((each) => /^"(.+)"$/.exec(each)?.[1] ?? [])) {
      const act = play({ model: "rehearsal", tools, messages: [{ role: "user", content: `[via tui] ${text}` }] }, 1);
      expect(JSON.stringify(act), text).not.toContain("I have no scene");
    }
  }
});
