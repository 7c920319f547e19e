import type { ReadStream, WriteStream } from "node:tty";
import type { ConversationInfo, ConversationList } from "../protocol/conversations.ts";
import type { Message } from "../protocol/messages.ts";
import { type Stateful, showState } from "../protocol/shown-state.ts";
import { meaningOf } from "./input/bindings.ts";
import { type Draft, edit, emptyDraft, insert, typed } from "./input/editor.ts";
import type { Key } from "./input/keys.ts";
import { looksOf } from "./screen/looks.ts";
import { createScreen, type Row } from "./screen/screen.ts";
import { openTty } from "./screen/tty.ts";
import { bold, coloured, dim, type Line, lineWidth, paint, type Span } from "./text/style.ts";
import { widthOf } from "./text/width.ts";
import { clip } from "./text/wrap.ts";
import { safe } from "./transcript/blocks.ts";
import { markOf } from "./transcript/tools.ts";

export interface PickerDeps {
  /** Returns a page of the conversations that contain the words, newest first, starting after the named one. */
  search: (words: string, after?: string) => Promise<ConversationList>;
  env: NodeJS.ProcessEnv;
  input: ReadStream;
  output: WriteStream;
  now?: () => number;
}

const MOST_ROWS = 12;
/** The next page is loaded when the selection is this many rows before the end of what is loaded. */
const AHEAD = 25;
const HELP = "type to search · ↑ ↓ choose · Enter opens · Escape leaves";

/** Lets the user choose a conversation; returns undefined if they leave. Loads only what is shown, however many there are. */
export async function pickConversation({ search, env, input, output, now = Date.now }: PickerDeps): Promise<string | undefined> {
  const looks = looksOf(env);
  let draft: Draft = emptyDraft;
  let items: ConversationInfo[] = [];
  let next: string | undefined;
  let chosen = 0;
  /** Counts the searches, so that outdated results can be recognised. */
  let asked = 0;
  let isLoading = true;
  let end: (name: string | undefined, error?: unknown) => void = () => undefined;

  const tty = openTty({ input, output, onKey: key, onResize: draw, onEnd: () => end(undefined) });
  const { write, size } = tty;
  const screen = createScreen({ write, columns: () => size().columns, rows: () => size().rows, reflows: looks.reflows });

  /** Only the latest search counts: results for what was typed before are dropped. */
  async function load(after?: string): Promise<void> {
    asked += 1;
    const mine = asked;
    isLoading = true;
    try {
      const page = await search(draft.text.trim(), after);
      if (mine !== asked) return;
      items = after === undefined ? page.items : [...items, ...page.items];
      next = page.next;
      if (after === undefined) chosen = 0;
      isLoading = false;
      draw();
    } catch (error) {
      if (mine === asked) end(undefined, error);
    }
  }

  function key(pressed: Key): void {
    if (pressed.kind === "focus") return;
    const before = draft.text;
    if (pressed.kind !== "key") draft = insert(draft, typed(pressed.text).replace(/\s+/g, " "));
    else {
      const meaning = meaningOf(pressed);
      if (meaning && "edit" in meaning) draft = edit(draft, meaning.edit);
      else if (meaning) act(meaning.action);
    }
    if (draft.text !== before) void load();
    draw();
  }

  function act(action: string): void {
    const wanted = items[chosen];
    if (action === "send" && !isLoading && wanted) end(wanted.name);
    if (action === "cancel" || action === "interrupt" || action === "endOfInput") end(undefined);
    if (action === "previous") chosen = Math.max(0, chosen - 1);
    if (action === "next") chosen = Math.min(items.length - 1, chosen + 1);
    if (chosen >= items.length - AHEAD && next !== undefined && !isLoading) void load(next);
  }

  function draw(): void {
    const { columns, rows } = size();
    const room = Math.max(1, Math.min(MOST_ROWS, rows - 4));
    const from = Math.max(0, Math.min(chosen - Math.floor(room / 2), items.length - room));
    const shown = items.slice(from, from + room).map((each, at) => rowOf(each, from + at === chosen, now()));
    const none = isLoading ? "…" : draft.text === "" ? "Nothing was said yet." : "No conversation has these words.";
    const list: Line[] = shown.length > 0 ? shown : [[dim(`  ${none}`)]];
    const lines: Line[] = [[coloured("› ", "cyan"), { text: safe(draft.text) }], ...list, [dim(`  ${HELP}`)]];
    const live = lines.map((line): Row => {
      const cut = clip(line, columns);
      return { text: paint(cut, looks), width: lineWidth(cut) };
    });
    const column = Math.min(columns - 1, 2 + widthOf(safe(draft.text.slice(0, draft.caret))));
    screen.draw({ above: [], live, caret: { row: 0, column } });
  }

  tty.take();
  try {
    return await new Promise<string | undefined>((resolve, reject) => {
      end = (name, error) => (error === undefined ? resolve(name) : reject(error));
      draw();
      void load();
    });
  } finally {
    asked += 1;
    screen.clear();
    tty.release();
  }
}

function rowOf(
  { name, title, folder, lastMessageAt, unread, running, waitsFor }: ConversationInfo,
  isChosen: boolean,
  now: number,
): Line {
  const words = safe(title ?? name);
  const about = [
    ...(title === null ? [] : [name]),
    ...(folder === null ? [] : [folder.split("/").slice(-2).join("/")]),
    ...(lastMessageAt === null ? [] : [ago(now - Date.parse(lastMessageAt))]),
  ];
  return [
    isChosen ? coloured("› ", "cyan") : { text: "  " },
    isChosen ? bold(words) : { text: words },
    dim(`  ${safe(about.join(" · "))}`),
    ...(running > 0 ? [{ text: "  " }, ...stateSpans({ status: "running", waitsFor })] : []),
    ...(unread > 0 ? [coloured(`  ${unread} unread`, "yellow")] : []),
  ];
}

function stateSpans(of: Pick<Message, "status" | "waitsFor">): Span[] {
  const state: Stateful = { kind: "message", ...of };
  return [markOf(state), { text: ` ${showState(state).words}` }];
}

function ago(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`;
}
