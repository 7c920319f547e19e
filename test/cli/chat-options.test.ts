import { expect, test } from "vitest";
import { type ChatOptions, chatOptionsIn } from "../../src/cli/chat-options.ts";

const CASES: [line: string, options: ChatOptions | undefined][] = [
  ["", {}],
  ["-c", { continue: true }],
  ["--continue", { continue: true }],
  ["--resume", { resume: true }],
  ["--resume shop", { resume: "shop" }],
  ["--resume=shop", { resume: "shop" }],
  ["--conversation shop", { conversation: "shop" }],
  ["--conversation=shop", { conversation: "shop" }],
  // These are left to the other commands, which refuse what makes no sense.
  ["--conversation", undefined],
  ["--conversation -c", undefined],
  ["--resume --continue", undefined],
  ["-c shop", undefined],
  ["-c --resume", undefined],
  ["--resume a b", undefined],
  ["send hello --conversation shop", undefined],
  ["--daemon", undefined],
  ["--help", undefined],
];

test.each(CASES)("io %s", (line, options) => {
  expect(chatOptionsIn(line.split(" ").filter(Boolean))).toEqual(options);
});
