import type { Client } from "../client/client.ts";
import type { Agent, Squad } from "../protocol/squads.ts";
import { COMMAND_NAMES } from "./commands/index.ts";
import { type Action, meaningOf } from "./input/bindings.ts";
import { commonStart, complete } from "./input/completion.ts";
import { type Draft, edit, emptyDraft, hasLineAbove, hasLineBelow, insert, replace, typed, withText } from "./input/editor.ts";
import { History } from "./input/history.ts";
import type { Kept } from "./input/kept.ts";
import type { Key } from "./input/keys.ts";
import { dim, type Line } from "./text/style.ts";
import { widthOf } from "./text/width.ts";
import { safe } from "./transcript/blocks.ts";

export interface ComposerDeps {
  kept: Kept;
  conversation: string;
  cwd: string;
  client: () => Client | undefined;
  onChange: () => void;
}

/** What a key asks of the terminal, once the line itself has been seen to. */
export type Wanted = Exclude<Action, "newLine" | "complete" | "previous" | "next" | "interrupt" | "endOfInput"> | "leave";

const AGAIN = "Ctrl-C again leaves; IO goes on in the background";

/** The line being typed: its history, its completion, and the drafts of other conversations. */
export class Composer {
  readonly #deps: ComposerDeps;
  readonly #history: History;
  readonly #drafts: Record<string, string>;
  #draft: Draft = emptyDraft;
  #options: string[] = [];
  #isLeaving = false;
  #isPrefixed = false;

  constructor(deps: ComposerDeps) {
    this.#deps = deps;
    this.#history = new History(deps.kept.history());
    this.#drafts = deps.kept.drafts();
    this.write(this.#drafts[deps.conversation] ?? "");
  }

  get draft(): Draft {
    return this.#draft;
  }
  get text(): string {
    return this.#draft.text;
  }

  write(text: string): void {
    this.#draft = withText(this.#draft, typed(text));
  }

  /** The line has gone where it was to go; it is remembered. */
  sent(): void {
    const { text } = this;
    if (text.trim() !== "" && this.#history.add(text)) setImmediate(() => this.#deps.kept.remember(text));
    this.#draft = { ...emptyDraft, cut: this.#draft.cut };
  }

  goTo(from: string, to: string): void {
    this.keep(from);
    this.write(this.#drafts[to] ?? "");
  }

  /** Keeps what was not sent with its conversation. */
  keep(conversation: string): void {
    if ((this.#drafts[conversation] ?? "") === this.text) return;
    this.#drafts[conversation] = this.text;
    this.#deps.kept.keepDrafts(this.#drafts);
  }

  key(key: Key): Wanted | undefined {
    const wasLeaving = this.#isLeaving;
    const wasPrefixed = this.#isPrefixed;
    this.#isLeaving = false;
    this.#isPrefixed = false;
    this.#options = [];
    if (key.kind === "text" || key.kind === "paste") {
      this.#draft = insert(this.#draft, typed(key.text));
      return undefined;
    }
    if (key.kind !== "key") return undefined;
    if (key.ctrl && key.name === "letter:x") {
      this.#isPrefixed = true;
      return undefined;
    }
    if (wasPrefixed && key.ctrl && key.name === "letter:e") return "externalEditor";
    const meaning = meaningOf(key);
    if (meaning && "edit" in meaning) this.#draft = edit(this.#draft, meaning.edit);
    return meaning && "action" in meaning ? this.#act(meaning.action, wasLeaving) : undefined;
  }

  #act(action: Action, wasLeaving: boolean): Wanted | undefined {
    const draft = this.#draft;
    switch (action) {
      case "newLine":
        this.#draft = insert(draft, "\n");
        return undefined;
      case "previous":
        this.#draft = hasLineAbove(draft) ? edit(draft, "up") : this.#history.step(draft, -1);
        return undefined;
      case "next":
        this.#draft = hasLineBelow(draft) ? edit(draft, "down") : this.#history.step(draft, 1);
        return undefined;
      case "complete":
        void this.#complete();
        return undefined;
      case "interrupt":
        if (draft.text === "" && wasLeaving) return "leave";
        this.#isLeaving = draft.text === "";
        this.#draft = { ...emptyDraft, cut: draft.cut };
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

  /** Completions in a row or two, or that a second Ctrl-C leaves. */
  hint(width: number): Line[] {
    if (this.#isLeaving) return [[dim(`  ${AGAIN}`)]];
    if (this.#options.length === 0) return [];
    const shown: string[] = [];
    let used = 2;
    for (const option of this.#options.map((each) => safe(each))) {
      used += widthOf(option) + 2;
      if (used > width - 6) break;
      shown.push(option);
    }
    const more = this.#options.length - shown.length;
    return [[dim(`  ${shown.join("  ")}${more > 0 ? `  +${more}` : ""}`)]];
  }

  async #complete(): Promise<void> {
    const before = this.#draft;
    const found = await complete(before, {
      commands: COMMAND_NAMES,
      argumentsOf: (command) => this.#argumentsOf(command),
      people: () => this.#people(),
      cwd: this.#deps.cwd,
    }).catch(() => undefined);
    // Whoever typed on meanwhile wants no other word.
    if (!found || this.#draft !== before) return;
    const [only, ...others] = found.options;
    const isWhole = others.length === 0;
    const text = isWhole ? `${only}${only!.endsWith("/") ? "" : " "}` : commonStart(found.options);
    this.#draft = replace(before, found.from, found.to, text);
    this.#options = isWhole ? [] : found.options;
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
