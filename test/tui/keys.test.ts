import { expect, test } from "vitest";
import { createKeyReader, type Key } from "../../src/tui/input/keys.ts";

const names = (keys: Key[]) =>
  keys.map((key) => {
    if (key.kind !== "key") return key.kind === "focus" ? `focus ${key.isFocused}` : `${key.kind} ${key.text}`;
    return `${key.ctrl ? "ctrl+" : ""}${key.alt ? "alt+" : ""}${key.shift ? "shift+" : ""}${key.name}`;
  });

const BYTES = "hi\r\x1b\r\x1b[A\x1b[1;5C\x1b[3~\x03\x7f\x1bb\x1b[200~two\nlines\x1b[201~\x1b[I\x1b[O\x1b[Z\x1bOH漢\x1b[13;2u";
const KEYS = [
  "text hi",
  "enter",
  "alt+enter",
  "up",
  "ctrl+right",
  "delete",
  "ctrl+letter:c",
  "backspace",
  "alt+letter:b",
  "paste two\nlines",
  "focus true",
  "focus false",
  "shift+tab",
  "home",
  "text 漢",
  "shift+enter",
];

test("bytes of a terminal are the same keys however they were cut on the way", () => {
  expect(names(createKeyReader().read(BYTES))).toEqual(KEYS);
  const slow = createKeyReader();
  expect(names(BYTES.split("").flatMap((byte) => slow.read(byte)))).toEqual(["text h", "text i", ...KEYS.slice(1)]);
});

test("an escape that nothing follows is the key of that name", () => {
  const reader = createKeyReader();
  expect(reader.read("\x1b")).toEqual([]);
  expect(reader.isWaiting()).toBe(true);
  expect(names(reader.settle())).toEqual(["escape"]);
  expect(names(reader.read("x"))).toEqual(["text x"]);
  expect(reader.read("\x1b[200~half of a paste")).toEqual([]);
  expect(reader.settle()).toEqual([]);
  expect(names(reader.read("\x1b[201~"))).toEqual(["paste half of a paste"]);
});
