import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Status } from "../../src/protocol/api.ts";
import { welcomeLines } from "../../src/tui/welcome.ts";
import { temporaryFolder } from "../support/home.ts";

const status = {
  version: "1.2.3",
  mode: "auto",
  engine: { kind: "rehearsal", state: "ready", model: "rehearsal", notes: [] },
} as unknown as Status;
const welcome = (folder: string | null, isFirst = true) =>
  welcomeLines({ status, url: "http://127.0.0.1:1", mode: "auto", conversation: "app", folder, env: {}, isFirst }).join("\n");

test("the first chat in a project names three things to try, on a file that is there", () => {
  const folder = temporaryFolder();
  expect(welcome(folder)).toContain(
    'Try: "What is this project, and how is it tested?" · "What would you mend here first?" · /diff',
  );
  writeFileSync(join(folder, "README.rst"), "");
  expect(welcome(folder)).toContain('"Look at @README.rst and mend what is wrong."');
  expect(welcome(folder)).toContain(`Conversation app, in ${folder}`);
  expect(welcome(folder, false)).not.toContain("Try:");
  expect(welcome(null)).toContain('Try: "What can you do?"');
});
