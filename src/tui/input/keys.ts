/** An action of the user at the keyboard. */
export type Key =
  | { kind: "text"; text: string }
  /** The whole pasted text. */
  | { kind: "paste"; text: string }
  | { kind: "key"; name: KeyName; alt: boolean; ctrl: boolean; shift: boolean }
  | { kind: "focus"; isFocused: boolean };

export type KeyName =
  | "enter"
  | "tab"
  | "escape"
  | "backspace"
  | "delete"
  | "up"
  | "down"
  | "left"
  | "right"
  | "home"
  | "end"
  | "pageup"
  | "pagedown"
  | "unknown"
  | `letter:${string}`;

const PASTE = "\x1b[200~";
const PASTE_END = "\x1b[201~";
const FINAL: Record<string, KeyName> = { A: "up", B: "down", C: "right", D: "left", H: "home", F: "end" };
const NUMBERED: Record<string, KeyName> = {
  1: "home",
  3: "delete",
  4: "end",
  5: "pageup",
  6: "pagedown",
  7: "home",
  8: "end",
};

export interface KeyReader {
  /** Parses the bytes received so far. An incomplete sequence waits for more bytes. */
  read(bytes: string): Key[];
  /** Called when no bytes have followed for a while: a lone escape byte was then the Escape key. */
  settle(): Key[];
  isWaiting(): boolean;
}

/** Parses terminal bytes into keys, even if sequences arrive in pieces. */
export function createKeyReader(): KeyReader {
  let waiting = "";
  return {
    read(bytes) {
      waiting += bytes;
      const keys: Key[] = [];
      for (let found = next(waiting); found; found = next(waiting)) {
        keys.push(found.key);
        waiting = waiting.slice(found.length);
      }
      return keys;
    },
    settle() {
      if (waiting === "" || waiting.startsWith(PASTE)) return [];
      const rest = waiting.slice(1);
      waiting = "";
      return [key("escape"), ...(rest === "" ? [] : this.read(rest))];
    },
    isWaiting: () => waiting !== "",
  };
}

function next(bytes: string): { key: Key; length: number } | undefined {
  if (bytes === "") return undefined;
  if (bytes.startsWith(PASTE)) {
    const end = bytes.indexOf(PASTE_END);
    if (end < 0) return undefined;
    return { key: { kind: "paste", text: bytes.slice(PASTE.length, end) }, length: end + PASTE_END.length };
  }
  if (bytes[0] === "\x1b") return escaped(bytes);
  const text = /^[^\p{Cc}]+/u.exec(bytes)?.[0];
  if (text) return { key: { kind: "text", text }, length: text.length };
  return { key: control(bytes[0]!), length: 1 };
}

function escaped(bytes: string): { key: Key; length: number } | undefined {
  const second = bytes[1];
  if (second === undefined) return undefined;
  if (second === "[" || second === "O") return sequence(bytes);
  if (second === "\x1b") return { key: key("escape"), length: 1 };
  const point = String.fromCodePoint(bytes.codePointAt(1)!);
  const inner = /\p{Cc}/u.test(point) ? control(point) : key(`letter:${point}`);
  return { key: inner.kind === "key" ? { ...inner, alt: true } : inner, length: 1 + point.length };
}

function sequence(bytes: string): { key: Key; length: number } | undefined {
  const found = /^.(?:\[([\d;:<=>?]*)([ -/]*)([@-~])|O([@-~]))/s.exec(bytes);
  if (!found) {
    if (/^.(?:\[[\d;:<=>?]*[ -/]*|O)$/s.test(bytes) && bytes.length < 32) return undefined;
    return { key: key("unknown"), length: 2 };
  }
  const [{ length }, parameters = "", , final = found[4] ?? ""] = found;
  if (final === "I" || final === "O") return { key: { kind: "focus", isFocused: final === "I" }, length };
  const [number = "", modifier = "1"] = parameters.split(";");
  const mask = Number(modifier.split(":")[0]) - 1;
  const held = { alt: (mask & 2) !== 0, ctrl: (mask & 4) !== 0, shift: (mask & 1) !== 0 };
  if (final === "Z") return { key: { ...key("tab"), shift: true }, length };
  if (final === "u") return { key: { ...spelled(Number(number)), ...held }, length };
  const name = final === "~" ? NUMBERED[number] : found[4] === "M" ? "enter" : FINAL[final];
  return { key: { ...key(name ?? "unknown"), ...held }, length };
}

/** A key reported by its code point. */
function spelled(code: number): Key & { kind: "key" } {
  const named: Record<number, KeyName> = { 13: "enter", 9: "tab", 27: "escape", 127: "backspace" };
  return key(named[code] ?? (code >= 0x20 ? `letter:${String.fromCodePoint(code)}` : "unknown"));
}

function control(sign: string): Key {
  if (sign === "\r") return key("enter");
  if (sign === "\t") return key("tab");
  if (sign === "\x7f" || sign === "\b") return key("backspace");
  if (sign.charCodeAt(0) > 0x1f) return key("unknown");
  return { ...key(`letter:${String.fromCharCode(sign.charCodeAt(0) + 0x60)}`), ctrl: true };
}

function key(name: KeyName): Key & { kind: "key" } {
  return { kind: "key", name, alt: false, ctrl: false, shift: false };
}
