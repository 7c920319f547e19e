import { PassThrough, type Readable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { isInForeground } from "../../lib/alive.ts";
import { terminalSafe } from "../../lib/terminal-safe.ts";
import type { Event } from "../../protocol/events.ts";
import type { Said } from "../../protocol/runs.ts";
import { showState } from "../../protocol/shown-state.ts";
import { meaningOf } from "../input/bindings.ts";
import { type Draft, edit, emptyDraft, insert, typed } from "../input/editor.ts";
import type { Key } from "../input/keys.ts";
import { createAttention } from "../screen/attention.ts";
import { looksOf } from "../screen/looks.ts";
import { createScreen, type Row, type Screen } from "../screen/screen.ts";
import { openTty, type Tty } from "../screen/tty.ts";
import { bold, coloured, type Line, lineWidth, paint } from "../text/style.ts";
import { widthOf } from "../text/width.ts";
import { clip } from "../text/wrap.ts";
import { RunStory } from "./story.ts";
import { RunWords } from "./words.ts";

/** Shows the progress of a run. */
export interface RunProgress {
  hear(event: Event): void;
  note(text: string): void;
  say(said: Said): void;
  end(): void;
}

export interface RunViewDeps {
  input: ReadStream;
  /** Standard error, since standard output is for the result. */
  output: WriteStream;
  env: NodeJS.ProcessEnv;
  now?: () => number;
}

const FRAME_MS = 30;
const TICK_MS = 120;

/** A run in a terminal, drawn like the chat: what has ended is printed once, and the work in progress is live below it. */
export class RunView implements RunProgress {
  readonly #now: () => number;
  readonly #looks: ReturnType<typeof looksOf>;
  readonly #tty: Tty;
  readonly #screen: Screen;
  readonly #attention: ReturnType<typeof createAttention>;
  readonly #story: RunStory;
  readonly #words: RunWords;
  readonly #answers = new PassThrough();
  readonly #asked = new Set<string>();
  #finished: Line[] = [];
  #draft: Draft = emptyDraft;
  #isBegun = false;
  /** Whether this process has the keyboard. Another program, or the shell if this runs in the background, may have it. */
  #isTaken = false;
  #isInterrupted = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #frame: NodeJS.Timeout | undefined;
  #ticking: NodeJS.Timeout | undefined;

  constructor({ input, output, env, now = () => performance.now() }: RunViewDeps) {
    this.#now = now;
    this.#looks = looksOf(env);
    this.#story = new RunStory(now);
    this.#words = new RunWords(this.#looks.links);
    this.#tty = openTty({
      ...{ input, output },
      onKey: (key) => this.#key(key),
      onResize: () => this.#draw(),
      onEnd: () => process.kill(process.pid, "SIGTERM"),
    });
    const { write, size } = this.#tty;
    this.#screen = createScreen({ write, columns: () => size().columns, rows: () => size().rows, reflows: this.#looks.reflows });
    this.#attention = createAttention(write);
  }

  /** The lines that the user types as answers. */
  get answers(): Readable {
    return this.#answers;
  }

  hear(event: Event): void {
    if (event.type === "approval.asked") {
      this.#asked.add(event.data.id);
      this.#attention.call(`swarm asks: ${event.data.summary}`);
    }
    if (event.type === "approval.decided") this.#asked.delete(event.data.id);
    if (event.type === "step.finished") this.#finished.push(...this.#words.end(event.data.key, this.#width));
    if (event.type === "run.finished")
      this.#attention.call(`swarm: the run is ${showState({ kind: "run", ...event.data }).words}`);
    this.#tell(...this.#story.hear(event));
  }

  note(text: string): void {
    this.#tell(
      ...terminalSafe(text)
        .split("\n")
        .map((line): Line => [{ text: line.replaceAll("\t", "    ") }]),
    );
  }

  say(said: Said): void {
    this.#finished.push(...this.#words.hear(said, this.#width));
    this.#soon();
  }

  /** Removes the live region and keeps what was printed. */
  end(): void {
    this.#finished.push(...this.#words.endAll(this.#width));
    if (this.#isBegun || this.#finished.length > 0) this.#draw();
    clearTimeout(this.#frame);
    clearInterval(this.#ticking);
    process.off("SIGCONT", this.#onContinue);
    if (this.#isBegun) this.#screen.clear();
    this.#attention.end();
    this.#release();
    this.#isBegun = false;
    this.#answers.end();
  }

  get #width(): number {
    return this.#tty.size().columns;
  }

  #tell(...lines: Line[]): void {
    if (lines.length > 0) this.#words.interrupt();
    this.#finished.push(...lines);
    this.#soon();
  }

  #soon(): void {
    if (!this.#isBegun) process.on("SIGCONT", this.#onContinue);
    this.#isBegun = true;
    this.#ticking ??= setInterval(() => this.#draw(), TICK_MS).unref();
    this.#frame ??= setTimeout(() => this.#draw(), Math.max(0, this.#drawnAt + FRAME_MS - this.#now()));
  }

  #draw(): void {
    clearTimeout(this.#frame);
    this.#frame = undefined;
    if (!this.#isBegun) return;
    this.#take();
    this.#drawnAt = this.#now();
    const { columns: width, rows: height } = this.#tty.size();
    const answer: Line[] = this.#asked.size > 0 ? [clip([coloured("› ", "cyan"), bold(this.#draft.text)], width - 1)] : [];
    const above = this.#finished.splice(0).map((line) => paint(line, this.#looks));
    const words = this.#words.live(width);
    const room = height - 1 - answer.length;
    const story = this.#story.live(width, room);
    const lines = [...words.slice(0, Math.max(0, room - story.length)), ...story, ...answer];
    // In the background, print only what has ended: the last line of the terminal belongs to another program.
    const live = this.#isTaken ? lines.map((line): Row => ({ text: paint(line, this.#looks), width: lineWidth(line) })) : [];
    const column = answer.length > 0 ? Math.min(width - 1, 2 + widthOf(this.#draft.text.slice(0, this.#draft.caret))) : 0;
    this.#screen.draw({ above, live, caret: { row: Math.max(0, live.length - 1), column } });
  }

  /** Takes the keyboard only in the foreground: in the background, the system would stop this process for it. */
  #take(): void {
    if (this.#isTaken || !isInForeground()) return;
    this.#isTaken = true;
    this.#tty.take();
  }

  #release(): void {
    if (this.#isTaken) this.#tty.release();
    this.#isTaken = false;
  }

  readonly #onContinue = () => this.#draw();

  #key(key: Key): void {
    if (key.kind === "focus") return void this.#attention.focus(key.isFocused);
    if (key.kind !== "key") this.#draft = insert(this.#draft, typed(key.text).replaceAll("\n", " "));
    else {
      const meaning = meaningOf(key);
      if (meaning && "edit" in meaning) this.#draft = edit(this.#draft, meaning.edit);
      if (meaning && "action" in meaning) this.#act(meaning.action);
    }
    if (this.#asked.size === 0) this.#draft = emptyDraft;
    this.#draw();
  }

  #act(action: string): void {
    if (action === "interrupt") {
      // The first Ctrl-C ends the run in good order. The second ends this process, so the terminal must be restored by then.
      if (this.#isInterrupted) this.end();
      this.#isInterrupted = true;
      process.kill(process.pid, "SIGINT");
    }
    if (action === "redraw") this.#screen.clear();
    if (action === "suspend") {
      this.#screen.clear();
      this.#release();
      process.kill(process.pid, "SIGTSTP");
    }
    if (action !== "send" || this.#asked.size === 0) return;
    this.#finished.push([coloured("› ", "cyan"), bold(this.#draft.text)]);
    this.#answers.write(`${this.#draft.text}\n`);
    this.#draft = emptyDraft;
  }
}
