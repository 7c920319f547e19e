import type { ReadStream, WriteStream } from "node:tty";
import type { Client } from "../client/client.ts";
import { engineLine } from "../client/status.ts";
import { messageOf } from "../lib/errors.ts";
import { howToType } from "../lib/invocation.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";
import { Composer } from "./composer.ts";
import { createKept } from "./input/kept.ts";
import type { Key } from "./input/keys.ts";
import { Link } from "./link.ts";
import { editOutside, runOwn } from "./outside.ts";
import { Questions } from "./questions.ts";
import { activityLines } from "./screen/activity.ts";
import { createAttention } from "./screen/attention.ts";
import { layOutLive } from "./screen/layout.ts";
import { looksOf } from "./screen/looks.ts";
import { createScreen, type Screen } from "./screen/screen.ts";
import { type StatusFacts, statusLine } from "./screen/status-line.ts";
import { openTty, type Tty } from "./screen/tty.ts";
import { Speaker } from "./speaker.ts";
import { paint } from "./text/style.ts";
import { type Block, joined, noteBlock, plainBlock, troubleBlock } from "./transcript/blocks.ts";
import { Transcript } from "./transcript/transcript.ts";

export interface TerminalDeps {
  /** Finds the daemon, or starts it; asked once the prompt is there. */
  connect: () => Promise<Client>;
  conversation: string;
  home: string;
  env: NodeJS.ProcessEnv;
  input: ReadStream;
  output: WriteStream;
  now?: () => number;
}

/** No more frames than the eye can follow. */
const FRAME_MS = 30;
const TICK_MS = 120;
/** How long what was said last has to reach the daemon once the person leaves. */
const LAST_WORDS_MS = 3_000;

/** The terminal chat: finished blocks printed once, and below them what is under way, the line being typed and the status. */
export class Terminal {
  readonly #env: NodeJS.ProcessEnv;
  readonly #now: () => number;
  readonly #looks: ReturnType<typeof looksOf>;
  readonly #tty: Tty;
  readonly #screen: Screen;
  readonly #attention: ReturnType<typeof createAttention>;
  readonly #link: Link;
  readonly #composer: Composer;
  readonly #speaker: Speaker;
  readonly #questions: Questions;
  #transcript: Transcript;
  #facts: StatusFacts;
  #isAway = false;
  #isOver = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #frame: NodeJS.Timeout | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #end: (error?: unknown) => void = () => {};

  constructor({ connect, conversation, home, env, input, output, now = () => performance.now() }: TerminalDeps) {
    this.#env = env;
    this.#now = now;
    this.#looks = looksOf(env);
    this.#facts = { connection: "connecting", conversation, queue: 0, tasks: 0, runs: 0, approvals: 0, tokens: 0 };
    this.#transcript = new Transcript({ links: this.#looks.links, now });
    this.#questions = new Questions(now);
    this.#tty = openTty({
      input,
      output,
      onKey: (key) => this.#key(key),
      onResize: () => this.#draw(),
      onEnd: () => this.leave(),
    });
    const { write, size } = this.#tty;
    this.#screen = createScreen({
      write,
      columns: () => size().columns,
      rows: () => size().rows,
      reflows: this.#looks.reflows,
    });
    this.#attention = createAttention(write);
    this.#link = new Link({
      connect,
      onWelcome: (status, url) => {
        const words = "Type a message; /help lists commands and keys; Ctrl-C twice leaves, and IO goes on in the background.";
        const how = howToType({ env, cwd: process.cwd() });
        const about = `IO ${status.version}, API at ${url}. ${engineLine(status)}`;
        this.#say(joined(...[about, how, words].flatMap((each) => (each === undefined ? [] : [noteBlock(each)]))));
      },
      onRecall: (messages) => {
        for (const message of messages) this.#transcript.recall(message);
        this.#soon();
      },
      onEvent: (event) => this.#hear(event),
      onFacts: (facts) => {
        this.#facts = { ...this.#facts, ...facts };
        this.#soon();
      },
      onApprovals: (waiting) => {
        this.#questions.keepOnly(waiting);
        this.#soon();
      },
      onLost: () => this.#say(noteBlock("the daemon does not answer; waiting for it (io start starts it again)")),
      onBack: () => this.#say(noteBlock("the daemon is back")),
      onFailed: (error) => this.leave(error),
    });
    this.#composer = new Composer({
      kept: createKept(home),
      conversation,
      cwd: process.cwd(),
      client: () => this.#link.client,
      onChange: () => this.#draw(),
    });
    this.#speaker = new Speaker({
      client: () => (this.#facts.connection === "connected" ? this.#link.client : undefined),
      transcript: () => this.#transcript,
      questions: this.#questions,
      conversation: () => this.#facts.conversation,
      composer: this.#composer,
      say: (block) => this.#say(block),
      write,
      goTo: (name) => this.#goTo(name),
      leave: () => this.leave(),
      onChange: () => this.#soon(),
    });
  }

  /** Shows the prompt, then finds the daemon; resolves when the person leaves. */
  async run(): Promise<void> {
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.#tty.take();
    this.#draw();
    void this.#link.follow(this.#facts.conversation);
    for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, () => this.leave());
    await ended;
  }

  leave(error?: unknown): void {
    if (this.#isOver) return;
    // Before anything that takes time: the next chat may be opened at once.
    this.#composer.keep(this.#facts.conversation);
    do this.#draw();
    while (this.#transcript.isBehind && !this.#isAway);
    this.#isOver = true;
    clearTimeout(this.#frame);
    clearInterval(this.#ticking);
    this.#screen.clear();
    this.#attention.end();
    this.#tty.release();
    void this.#lastWords().finally(() => this.#end(error));
  }

  /** Whoever leaves right after Enter has said it all the same; what nobody heard of stays in the line for the next chat. */
  async #lastWords(): Promise<void> {
    const unsent = await this.#speaker.arrived(LAST_WORDS_MS);
    this.#link.leave();
    const { text } = this.#composer;
    const lost = unsent.filter((each) => !text.includes(each));
    if (lost.length > 0) this.#composer.write([...lost, text].filter(Boolean).join("\n"));
    this.#composer.keep(this.#facts.conversation);
    if (unsent.length > 0) this.#tty.write("· not sent: the daemon does not answer. Your line is kept for the next chat.\r\n");
  }

  #hear(event: Event): void {
    this.#transcript.hear(event);
    this.#speaker.hear(event);
    if (event.type === "approval.asked" && this.#concerns(event.data) && this.#questions.ask(event.data)) {
      this.#count(1);
      this.#attention.call(`IO asks: ${event.data.summary}`);
    }
    if (event.type === "approval.decided") {
      const told = this.#questions.decided(event.data);
      if (told) this.#count(-1);
      if (told) this.#transcript.print(told);
    }
    if (event.type === "message.finished") this.#attention.call("IO has answered");
    if (event.type === "budget.reached")
      this.#transcript.calmly(noteBlock(`the ${event.data.kind}'s budget is nearly used up (/usage)`));
    this.#soon();
  }

  /** What waits for the person, before the daemon is asked for all of it again. */
  #count(by: 1 | -1): void {
    this.#facts = { ...this.#facts, approvals: Math.max(0, this.#facts.approvals + by) };
  }

  #concerns({ conversation }: Approval): boolean {
    return conversation === null || conversation === this.#facts.conversation;
  }

  #key(key: Key): void {
    if (key.kind === "focus") return void this.#attention.focus(key.isFocused);
    const action = this.#composer.key(key);
    switch (action) {
      case undefined:
        break;
      case "leave":
        return void this.leave();
      case "redraw":
        this.#screen.clear();
        break;
      case "suspend":
        return void this.#suspend();
      case "externalEditor":
        return void this.#away(async () => {
          const left = await editOutside(this.#composer.text, this.#env);
          if ("text" in left) this.#composer.write(left.text);
          else this.#say(troubleBlock(left.failed));
        });
      case "send":
      case "queue": {
        const own = /^!\s*(\S[\s\S]*)$/.exec(this.#composer.text.trim());
        if (own) {
          this.#composer.sent();
          void this.#away(async () => {
            const ended = await runOwn(own[1]!, this.#env);
            if (ended !== "") this.#say(noteBlock(ended));
          }, `! ${own[1]}`);
          break;
        }
        this.#speaker.submit(action);
        // What was said goes first, the picture of it a moment later.
        return void this.#soon();
      }
      default:
        this.#speaker.act(action);
    }
    this.#draw();
  }

  /** Hands the terminal to another program for as long as the work takes. */
  async #away(work: () => Promise<void>, title?: string): Promise<void> {
    if (title !== undefined) {
      this.#say(plainBlock(title));
      this.#draw();
    }
    this.#screen.clear();
    this.#tty.release();
    this.#isAway = true;
    // Ctrl-C is meant for the program that has the terminal.
    const unmoved = () => undefined;
    process.on("SIGINT", unmoved);
    await work().catch((error: unknown) => this.#say(troubleBlock(messageOf(error))));
    process.off("SIGINT", unmoved);
    this.#isAway = false;
    this.#tty.take();
    this.#draw();
  }

  #suspend(): void {
    this.#screen.clear();
    this.#tty.release();
    process.once("SIGCONT", () => {
      this.#tty.take();
      this.#draw();
    });
    process.kill(process.pid, "SIGTSTP");
  }

  #goTo(conversation: string): void {
    if (conversation === this.#facts.conversation) return void this.#say(noteBlock(`this is ${conversation} already`));
    this.#draw();
    this.#composer.goTo(this.#facts.conversation, conversation);
    this.#facts = { ...this.#facts, conversation, tokens: 0 };
    this.#transcript = new Transcript({ links: this.#looks.links, now: this.#now });
    this.#transcript.print(() => [[]]);
    this.#say(noteBlock(`conversation ${conversation}`));
    void this.#link.follow(conversation);
  }

  #say(block: Block): void {
    this.#transcript.print(block);
    this.#soon();
  }

  /** Draws at once if the last frame is old enough, and otherwise as soon as it is. */
  #soon(): void {
    const due = this.#drawnAt + FRAME_MS - this.#now();
    this.#frame ??= setTimeout(() => this.#draw(), Math.max(0, due));
  }

  #draw(): void {
    clearTimeout(this.#frame);
    this.#frame = undefined;
    if (this.#isAway || this.#isOver) return;
    this.#drawnAt = this.#now();
    const { columns: width, rows: height } = this.#tty.size();
    const question = this.#questions.lines(Math.floor(height / 2), (block) => this.#transcript.print(block));
    const above = this.#transcript.take(width).map((line) => paint(line, this.#looks));
    const activity = activityLines({
      turn: this.#transcript.turn,
      waiting: this.#transcript.waiting,
      sending: this.#speaker.sending,
      now: this.#now(),
    });
    const frame = layOutLive(
      {
        underWay: this.#transcript.live(width),
        question,
        activity,
        draft: this.#composer.draft,
        hint: this.#composer.hint(width),
        status: statusLine(this.#facts, width),
      },
      { width, height, looks: this.#looks },
    );
    this.#screen.draw({ above, ...frame });
    if (this.#transcript.isBehind) this.#frame ??= setTimeout(() => this.#draw(), 1);
    this.#tick(this.#transcript.turn !== undefined || this.#speaker.sending.length > 0);
  }

  /** Time is shown while something is under way. */
  #tick(isBusy: boolean): void {
    if (isBusy) this.#ticking ??= setInterval(() => this.#draw(), TICK_MS);
    else {
      clearInterval(this.#ticking);
      this.#ticking = undefined;
    }
  }
}
