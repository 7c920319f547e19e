import type { Client } from "../client/client.ts";
import { MODES } from "../home/mode-words.ts";
import type { Agent, Squad } from "../protocol/squads.ts";
import { type Action, meaningOf } from "./input/bindings.ts";
import { commonStart, complete } from "./input/completion.ts";
import {
  type Draft,
  type Edit,
  edit,
  emptyDraft,
  hasLineAbove,
  hasLineBelow,
  insert,
  replace,
  typed,
  withText,
} from "./input/editor.ts";
import { FoldedPastes } from "./input/folded.ts";
import { History } from "./input/history.ts";
import type { Kept } from "./input/kept.ts";
import type { Key } from "./input/keys.ts";
import { coloured, dim, type Line } from "./text/style.ts";
import { widthOf } from "./text/width.ts";
import { safe } from "./transcript/blocks.ts";

export interface ComposerDeps {
  kept: Kept;
  cwd: string;
  client: () => Client | undefined;
  /** Every available command with its help. */
  commands: () => readonly { name: string; help: string }[];
  /** Whether a turn is running, which Ctrl-C would cancel. */
  isBusy: () => boolean;
  onChange: () => void;
}

/** The completion menu. `at` is the option that is now in the line. */
interface Menu {
  from: number;
  to: number;
  options: string[];
  at: number;
}

/** What a key asks the terminal to do, after the line itself has been edited. */
export type Wanted =
  | Exclude<Action, "newLine" | "complete" | "previous" | "next" | "interrupt" | "endOfInput" | "search">
  | "leave";

/** Where a draft is kept that was typed before the conversation was known. */
const NOWHERE = "";
/** How many completions are shown at once. */
const MENU_ROWS = 8;
const AGAIN = "Ctrl-C again leaves; IO goes on in the background";

/** The line being typed, with its history, its completion, and the drafts of other conversations. */
export class Composer {
  readonly #deps: ComposerDeps;
  readonly #history: History;
  readonly #drafts: Record<string, string>;
  #draft: Draft = emptyDraft;
  readonly #pastes = new FoldedPastes();
  #menu: Menu | undefined;
  /** The words being searched for in the history, the position of the hit, and the line before the search. */
  #search: { words: string; at: number | undefined; before: Draft } | undefined;
  /** Set if the last key was Ctrl-C on an empty line: it cancelled a turn, or asked to leave the chat. */
  #interrupted: "turn" | "chat" | undefined;
  #isPrefixed = false;

  constructor(deps: ComposerDeps) {
    this.#deps = deps;
    this.#history = new History(deps.kept.history());
    this.#drafts = deps.kept.drafts();
    this.write(this.#drafts[NOWHERE] ?? "");
  }

  get draft(): Draft {
    return this.#draft;
  }
  /** The text to send, with large pastes expanded. */
  get text(): string {
    return this.#pastes.expand(this.#draft.text);
  }

  /** Whether nothing was ever sent from here. */
  get isNew(): boolean {
    return this.#history.isEmpty;
  }

  write(text: string): void {
    this.#draft = this.#recalled(withText(this.#draft, typed(text)));
  }

  #recalled(draft: Draft): Draft {
    const text = this.#pastes.recall(draft.text);
    return text === draft.text ? draft : withText(draft, text);
  }

  /** Adds the line to the history and clears it, after it was sent. */
  sent(): void {
    const { text } = this;
    if (text.trim() !== "" && this.#history.add(text)) setImmediate(() => this.#deps.kept.remember(text));
    this.#draft = { ...emptyDraft, cut: this.#draft.cut };
  }

  /** Called when the conversation is known. Restores its draft, unless something was typed meanwhile. */
  open(conversation: string): void {
    delete this.#drafts[NOWHERE];
    if (this.text === "") this.write(this.#drafts[conversation] ?? "");
  }

  goTo(from: string, to: string): void {
    this.keep(from);
    this.write(this.#drafts[to] ?? "");
  }

  /** Saves the unsent line as the conversation's draft. */
  keep(conversation: string): void {
    if ((this.#drafts[conversation] ?? "") === this.text) return;
    this.#drafts[conversation] = this.text;
    this.#deps.kept.keepDrafts(this.#drafts);
  }

  key(key: Key): Wanted | undefined {
    const wasLeaving = this.#isLeaving();
    const wasPrefixed = this.#isPrefixed;
    this.#interrupted = undefined;
    this.#isPrefixed = false;
    if (this.#search && this.#searched(key)) return undefined;
    const menu = this.#menu;
    this.#menu = undefined;
    if (key.kind === "text" || key.kind === "paste") {
      const text = typed(key.text);
      this.#draft = insert(this.#draft, key.kind === "paste" ? this.#pastes.fold(text) : text);
      return undefined;
    }
    if (key.kind !== "key") return undefined;
    if (menu && key.name === "escape") return undefined;
    if (menu && key.name === "tab" && !key.shift) {
      this.#choose(menu);
      return undefined;
    }
    if (key.ctrl && key.name === "letter:x") {
      this.#isPrefixed = true;
      return undefined;
    }
    if (wasPrefixed && key.ctrl && key.name === "letter:e") return "externalEditor";
    const meaning = meaningOf(key);
    if (meaning && "edit" in meaning) this.#edit(meaning.edit);
    return meaning && "action" in meaning ? this.#act(meaning.action, wasLeaving) : undefined;
  }

  /** Backspace removes the marker of a large paste as a whole, and a paste whose marker was broken can be put back. */
  #edit(step: Edit): void {
    const { text, caret } = this.#draft;
    const marker = step === "backspace" ? this.#pastes.endOf(text.slice(0, caret)) : undefined;
    const next = marker ? replace(this.#draft, caret - marker.length, caret, "") : edit(this.#draft, step);
    const broken = this.#pastes.brokenBy(text, next.text);
    this.#draft = broken === undefined ? next : { ...next, cut: broken };
  }

  /** Continues the search. Returns false for a key that ends it and keeps its normal meaning. */
  #searched(key: Key): boolean {
    const search = this.#search!;
    const look = (words: string, from?: number) => {
      const at = this.#history.find(words, from);
      this.#search = { ...search, words, at: at ?? (from === undefined ? undefined : search.at) };
      const found = this.#search.at;
      if (found !== undefined) this.#draft = this.#recalled(withText(this.#draft, this.#history.at(found)));
      return true;
    };
    if (key.kind === "text") return look(search.words + key.text);
    if (key.kind !== "key") return false;
    if (key.name === "backspace") return look(search.words.slice(0, -1));
    if (key.ctrl && key.name === "letter:r") return look(search.words, search.at);
    this.#search = undefined;
    if (key.name === "escape" || (key.ctrl && /^letter:[cg]$/.test(key.name))) {
      this.#draft = search.before;
      return true;
    }
    return key.name === "enter" || key.name === "tab";
  }

  /** Puts the menu's next option into the line. */
  #choose(menu: Menu): void {
    const at = (menu.at + 1) % menu.options.length;
    const option = menu.options[at]!;
    this.#draft = replace(this.#draft, menu.from, menu.to, option);
    this.#menu = { ...menu, at, to: menu.from + option.length };
  }

  #act(action: Action, wasLeaving: boolean): Wanted | undefined {
    const draft = this.#draft;
    switch (action) {
      case "newLine":
        this.#draft = insert(draft, "\n");
        return undefined;
      case "previous":
        this.#draft = hasLineAbove(draft) ? edit(draft, "up") : this.#recalled(this.#history.step(draft, -1));
        return undefined;
      case "next":
        this.#draft = hasLineBelow(draft) ? edit(draft, "down") : this.#recalled(this.#history.step(draft, 1));
        return undefined;
      case "complete":
        void this.#complete();
        return undefined;
      case "interrupt":
        if (draft.text === "" && wasLeaving) return "leave";
        if (draft.text === "") this.#interrupted = this.#deps.isBusy() ? "turn" : "chat";
        if (this.#interrupted === "turn") return "cancel";
        // Up brings the cleared line back.
        if (draft.text.trim() !== "") this.#history.add(this.text);
        this.#draft = { ...emptyDraft, cut: draft.cut };
        return undefined;
      case "search":
        this.#search = { words: "", at: undefined, before: draft };
        return undefined;
      case "endOfInput":
        if (draft.text === "") return "leave";
        this.#draft = edit(draft, "delete");
        return undefined;
      case "send":
        if (draft.text.slice(0, draft.caret).endsWith("\\")) {
          this.#draft = insert(edit(draft, "backspace"), "\n");
          return undefined;
        }
        return "send";
      default:
        return action;
    }
  }

  /** Whether Ctrl-C leaves now. If it was pressed to cancel a turn that has since ended, the user did not mean to leave. */
  #isLeaving(): boolean {
    return this.#interrupted === "chat" || (this.#interrupted === "turn" && this.#deps.isBusy());
  }

  /** Shows the completion menu, the search, or the note that a second Ctrl-C leaves. */
  hint(width: number): Line[] {
    if (this.#isLeaving()) return [[dim(`  ${AGAIN}`)]];
    if (this.#search) {
      const { words, at } = this.#search;
      const found = words !== "" && at === undefined ? "  (nothing like it)" : "";
      return [[dim(`  search: ${safe(words)}${found}  ·  Ctrl-R older, Enter takes it, Escape goes back`)]];
    }
    return this.#menu ? menuLines(this.#menu, this.#deps.commands(), width) : [];
  }

  async #complete(): Promise<void> {
    const before = this.#draft;
    const found = await complete(before, {
      commands: this.#deps.commands().map(({ name }) => name),
      argumentsOf: (command) => this.#argumentsOf(command),
      people: () => this.#people(),
      cwd: this.#deps.cwd,
    }).catch(() => undefined);
    // The user typed on meanwhile, so the completion is outdated.
    if (!found || this.#draft !== before) return;
    const [only, ...others] = found.options;
    const isWhole = others.length === 0;
    const text = isWhole ? `${only}${only!.endsWith("/") ? "" : " "}` : commonStart(found.options);
    this.#draft = replace(before, found.from, found.to, text);
    this.#menu = isWhole ? undefined : { from: found.from, to: found.from + text.length, options: found.options, at: -1 };
    this.#deps.onChange();
  }

  async #argumentsOf(command: string): Promise<string[]> {
    const client = this.#deps.client();
    if (!client) return [];
    const names = async <T>(path: string, name: (item: T) => string) =>
      (await client.request<{ items: T[] }>("GET", path)).items.map(name);
    const ids = (path: string) => names<{ id: string }>(path, ({ id }) => id);
    switch (command) {
      case "agents":
        return names<Squad>("/api/squads", ({ slug }) => slug);
      case "activity":
        return ids("/api/tasks");
      case "conversation":
        return names<{ name: string }>("/api/conversations", ({ name }) => name);
      case "allow":
      case "deny":
        return ids("/api/approvals?state=waiting");
      case "model":
        return ids("/api/models");
      case "mode":
        return [...MODES];
      case "background":
        return ["stop", ...(await ids("/api/background?state=running"))];
      default:
        return [];
    }
  }

  async #people(): Promise<string[]> {
    const client = this.#deps.client();
    if (!client) return [];
    const { items } = await client.request<{ items: Squad[] }>("GET", "/api/squads");
    const agents = await Promise.all(
      items.slice(0, 20).map(async ({ slug }) => {
        const team = await client.request<{ items: Agent[] }>("GET", `/api/squads/${encodeURIComponent(slug)}/agents`);
        return team.items.map(({ characterName }) => `${slug}/${characterName.replace(/\s+/g, "-")}`);
      }),
    );
    return [...items.map(({ slug }) => slug), ...agents.flat()];
  }
}

/** The options around the chosen one, each with its help. */
function menuLines({ options, at }: Menu, commands: readonly { name: string; help: string }[], width: number): Line[] {
  const start = Math.max(0, Math.min(at - MENU_ROWS + 2, options.length - MENU_ROWS));
  const shown = options.slice(start, start + MENU_ROWS);
  const wide = Math.min(32, Math.max(...shown.map((option) => widthOf(safe(option)))));
  const lines = shown.map((option, index): Line => {
    const help = commands.find(({ name }) => `/${name}` === option)?.help ?? (option.endsWith("/") ? "folder" : "");
    const text = `${safe(option)}${" ".repeat(Math.max(0, wide - widthOf(safe(option))))}  ${safe(help)}`.slice(0, width);
    return start + index === at ? [coloured(`› ${text}`, "cyan")] : [dim(`  ${text}`)];
  });
  const more = options.length - shown.length;
  return more > 0 ? [...lines, [dim(`  +${more}`)]] : lines;
}
