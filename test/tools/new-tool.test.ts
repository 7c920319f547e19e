import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { pathsOf } from "../../src/home/paths.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { openStore } from "../../src/store/open.ts";
import { createGate } from "../../src/tools/gate.ts";
import { createPathGuard } from "../../src/tools/guard.ts";
import { createPolicy } from "../../src/tools/policy.ts";
import { countLines } from "../support/count-lines-tool.ts";
import { quietLog, startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";

/** A conversation whose only tool is the new one, and a model that calls it with these arguments and repeats the result. */
async function talkAbout(args: unknown) {
  const home = temporaryFolder();
  const paths = pathsOf({ IO_HOME: home });
  writeFileSync(paths.token, "the token\n");
  writeFileSync(join(home, "poem.txt"), "one\ntwo\nthree\n");
  const model = await scriptedModel((request) =>
    isAfterTool(request) ? { say: String(request.messages.at(-1)?.content) } : { call: [{ tool: "count_lines", args }] },
  );
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => false });
  const gate = createGate({ store, redactor: createRedactor(), log: quietLog, policy: createPolicy({ guard, keep: [home] }) });
  const engine = await startEngine(temporaryFolder(), model.url);
  const session = engine.session({
    id: "talk",
    systemMessage: () => "You count.",
    tools: gate.bind([countLines()], { cwd: home, actor: "orchestrator" }),
    workingDirectory: home,
  });
  const { text } = await session.run(turn("count"));
  return { text, calls: gate.callsOf("m_test") };
}

test("a new tool is one value: offered, checked, journaled and kept from secrets like every other", async () => {
  expect(await talkAbout({ path: "poem.txt" })).toMatchObject({
    text: "poem.txt has 3 lines.",
    calls: [{ tool: "count_lines", state: "done", kind: "read" }],
  });
});

test.each([
  ["a wrong argument is told with what is allowed", { file: "poem.txt" }, /"file" is not an argument of it/, "refused"],
  ["its own failure says what to do next", { path: "prose.txt" }, /prose\.txt cannot be read\. List the folder/, "failed"],
  ["a secret of IO's is out of its reach", { path: "token" }, /token/, "refused"],
])("%s", async (_, args, said, state) => {
  const { text, calls } = await talkAbout(args);
  expect(text).toMatch(said);
  expect(text).not.toMatch(/has \d+ lines/);
  expect(calls).toMatchObject([{ state }]);
});
