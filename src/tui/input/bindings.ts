import type { Edit } from "./editor.ts";
import type { Key } from "./keys.ts";

/** What a key does, apart from editing the line. */
export type Action =
  | "send"
  | "queue"
  | "newLine"
  | "cancel"
  | "interrupt"
  | "endOfInput"
  | "complete"
  | "previous"
  | "next"
  | "takeBack"
  | "unfold"
  | "search"
  | "mode"
  | "externalEditor"
  | "redraw"
  | "suspend";

const EDITS: Record<string, Edit> = {
  left: "left",
  right: "right",
  home: "lineStart",
  end: "lineEnd",
  backspace: "backspace",
  delete: "delete",
  "ctrl+left": "wordLeft",
  "ctrl+right": "wordRight",
  "alt+left": "wordLeft",
  "alt+right": "wordRight",
  "alt+b": "wordLeft",
  "alt+f": "wordRight",
  "alt+d": "cutWordAfter",
  "alt+backspace": "cutWord",
  "ctrl+w": "cutWord",
  "ctrl+a": "lineStart",
  "ctrl+e": "lineEnd",
  "ctrl+b": "left",
  "ctrl+f": "right",
  "ctrl+k": "cutToEnd",
  "ctrl+u": "cutToStart",
  "ctrl+y": "putBack",
  "ctrl+t": "swap",
};

const ACTIONS: Record<string, Action> = {
  enter: "send",
  "alt+enter": "queue",
  "shift+enter": "newLine",
  "ctrl+j": "newLine",
  escape: "cancel",
  "ctrl+c": "interrupt",
  "ctrl+d": "endOfInput",
  tab: "complete",
  "shift+tab": "mode",
  up: "previous",
  down: "next",
  "ctrl+p": "previous",
  "ctrl+n": "next",
  "alt+up": "takeBack",
  "ctrl+o": "unfold",
  "ctrl+r": "search",
  "ctrl+g": "externalEditor",
  "ctrl+l": "redraw",
  "ctrl+z": "suspend",
};

/** What a key means: an edit, an action, or nothing. */
export function meaningOf(key: Key & { kind: "key" }): { edit: Edit } | { action: Action } | undefined {
  const name = key.name.replace(/^letter:/, "").toLowerCase();
  const held = `${key.ctrl ? "ctrl+" : ""}${key.alt ? "alt+" : ""}${key.shift ? "shift+" : ""}${name}`;
  const edit = EDITS[held];
  if (edit) return { edit };
  const action = ACTIONS[held];
  return action && { action };
}
