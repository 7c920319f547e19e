import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Composer } from "../../src/tui/composer.ts";
import { FoldedPastes } from "../../src/tui/input/folded.ts";
import { createKept } from "../../src/tui/input/kept.ts";
import { temporaryFolder } from "../support/home.ts";

const UP = { kind: "key", name: "up", alt: false, ctrl: false, shift: false } as const;

test("what was sent and what was not are still known after pastes of any size", () => {
  const home = temporaryFolder();
  const kept = createKept(home);
  const large = (letter: string) => letter.repeat(900_000);
  for (const text of ["the first", large("a"), large("b"), large("c"), "the last"]) kept.remember(text);
  kept.keepDrafts({ one: large("d"), two: large("e"), three: large("f") });

  expect(createKept(home).history()).toEqual(["the first", large("b"), large("c"), "the last"]);
  expect(Object.keys(createKept(home).drafts())).toEqual(["one", "two", "three"]);
  // The file does not grow forever.
  expect(statSync(join(home, "history")).size).toBeLessThan(2_000_000);
});

test("a long message that comes back from the history stands folded in the line, and is sent whole", () => {
  const kept = createKept(temporaryFolder());
  const long = "a word ".repeat(100_000);
  kept.remember(long);
  kept.keepDrafts({ main: long });
  const deps = { kept, cwd: "/", client: () => undefined, commands: () => [], isBusy: () => false, onChange: () => {} };
  const composer = new Composer(deps);
  composer.key(UP);
  expect(composer.draft.text).toMatch(/^\[pasted·700000·characters·#1\]$/);
  expect(composer.text).toBe(long);

  const draft = new Composer(deps);
  draft.open("main");
  expect(draft.draft.text).toMatch(/^\[pasted·/);
  expect(draft.text).toBe(long);
});

test("a paste is as many lines as it has, whether the last one ends or not", () => {
  const pastes = new FoldedPastes();
  expect(pastes.fold("row\n".repeat(10))).toBe("row\n".repeat(10));
  expect(pastes.fold("row\n".repeat(40))).toBe("[pasted·40·lines·#1]");
  expect(pastes.fold(`${"row\n".repeat(39)}row`)).toBe("[pasted·40·lines·#2]");
});
