import type { ReadStream, WriteStream } from "node:tty";
import type { Client } from "../client/client.ts";
import { ownCommands } from "../home/own-commands.ts";
import { messageOf } from "../lib/errors.ts";
import { concerns } from "../protocol/approval-text.ts";
import type { ConversationInfo } from "../protocol/conversations.ts";
import type { Event } from "../protocol/events.ts";
import { isFromElsewhere, type Notice } from "../protocol/news.ts";
import { formatDiskState } from "../protocol/shown-state.ts";
import type { TodoItem } from "../protocol/todo.ts";
import { commandList } from "./commands/index.ts";
import { Composer } from "./composer.ts";
import { createKept } from "./input/kept.ts";
import type { Key } from "./input/keys.ts";
import { Link } from "./link.ts";
import { editOutside, runOwn } from "./outside.ts";
import { Questions } from "./questions.ts";
import { Reviews } from "./reviews.ts";
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
import { welcomeLines } from "./welcome.ts";

export interface TerminalDeps {
  /** Finds the daemon, or starts it. Called after the prompt is shown. */
  connect: () => Promise<Client>;
  /** Chooses the conversation to open. Called after the daemon is found. */
  open: (client: Client) => Promise<ConversationInfo>;
  home: string;
  env: NodeJS.ProcessEnv;
  input: ReadStream;
  output: WriteStream;
  now?: () => number;
}

/** Sources of replies that nobody waits for. Their news events decide whether to alert the user. */
const UNASKED: readonly string[] = ["schedule", "background"];
/** The minimum time between frames; the eye follows no faster. */
const FRAME_MS = 30;
const TICK_MS = 120;
/** How long pending messages have to reach the daemon after the user leaves. */
const LAST_WORDS_MS = 3_000;

/** The terminal chat: finished blocks are printed once; below them are the work in progress, the input line and the status. */
export class Terminal {
  readonly #env: NodeJS.ProcessEnv;
  readonly #home: string;
  readonly #now: () => number;
  readonly #looks: ReturnType<typeof looksOf>;
  readonly #tty: Tty;
  readonly #screen: Screen;
  readonly #attention: ReturnType<typeof createAttention>;
  readonly #link: Link;
  readonly #open: TerminalDeps["open"];
  readonly #composer: Composer;
  readonly #speaker: Speaker;
  readonly #questions: Questions;
  readonly #reviews: Reviews;
  #transcript: Transcript;
  #facts: StatusFacts;
  /** The project folder of the conversation. */
  #folder: string | null = null;
  /** The model's list of steps. */
  #todo: TodoItem[] = [];
  #isAway = false;
  #isOver = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #frame: NodeJS.Timeout | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #end: (error?: unknown) => void = () => {};

  constructor({ connect, open, home, env, input, output, now = () => performance.now() }: TerminalDeps) {
    this.#env = env;
    this.#home = home;
    this.#now = now;
    this.#open = open;
    this.#looks = looksOf(env);
    this.#facts = { connection: "connecting", conversation: "", queue: 0, tasks: 0, runs: 0, approvals: 0, tokens: 0 };
    this.#transcript = new Transcript({ links: this.#looks.links, now });
    this.#questions = new Questions(now);
    this.#reviews = new Reviews({
      say: (block) => this.#say(block),
      edit: (text) => this.#editPage(text),
      attempt: (work) => this.#speaker.attempt(work),
      onChange: () => this.#soon(),
    });
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
      onWelcome: (status, url, mode) => {
        const { conversation } = this.#facts;
        const lines = welcomeLines({ status, url, mode, conversation, folder: this.#folder, env, isFirst: this.#composer.isNew });
        this.#say(joined(...lines.map(noteBlock)));
      },
      onRecall: (messages) => {
        for (const message of messages) this.#transcript.recall(message);
        this.#soon();
      },
      onEvent: (event) => this.#hear(event),
      onFacts: ({ todo, ...facts }) => {
        this.#todo = todo ?? this.#todo;
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
      cwd: process.cwd(),
      client: () => this.#link.client,
      commands: () => commandList(this.#ownCommands()),
      isBusy: () => this.#transcript.turn !== undefined,
      onChange: () => this.#draw(),
    });
    this.#speaker = new Speaker({
      client: () => (this.#facts.connection === "connected" ? this.#link.client : undefined),
      transcript: () => this.#transcript,
      ...{ questions: this.#questions, reviews: this.#reviews },
      conversation: () => this.#facts.conversation,
      ownCommands: () => this.#ownCommands(),
      cwd: process.cwd(),
      composer: this.#composer,
      say: (block) => this.#say(block),
      write,
      goTo: (name) => this.#goTo(name),
      leave: () => this.leave(),
      onChange: () => this.#soon(),
    });
  }

  /** Shows the prompt, then finds the daemon. Resolves when the user leaves. */
  async run(): Promise<void> {
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.#tty.take();
    this.#draw();
    void this.#link.begin(this.#open, ({ name, folder }) => {
      this.#facts = { ...this.#facts, conversation: name };
      this.#folder = folder;
      this.#composer.open(name);
      this.#soon();
    });
    for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, () => this.leave());
    await ended;
  }

  leave(error?: unknown): void {
    if (this.#isOver) return;
    // Done before anything slow, because the user may open the next chat at once.
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

  /** Messages sent right before leaving still go out. What did not arrive is kept in the draft for the next chat. */
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
    if (event.type === "approval.asked" && concerns(event.data, this.#facts.conversation) && this.#questions.ask(event.data)) {
      this.#count(1);
      this.#attention.call(`IO asks: ${event.data.summary}`);
    }
    if (event.type === "approval.decided") {
      const told = this.#questions.decided(event.data);
      if (told) this.#count(-1);
      if (told) this.#transcript.print(told);
    }
    if (event.type === "message.finished" && !UNASKED.includes(event.data.source.channel))
      this.#attention.call("IO has answered");
    if (event.type === "news.told") this.#tell(event.data);
    if (event.type === "todo.changed" && event.conversation === this.#facts.conversation) this.#todo = event.data.items;
    if (event.type === "budget.reached")
      this.#transcript.calmly(noteBlock(`the ${event.data.kind}'s budget is nearly used up (/usage)`));
    if (event.type === "disk.changed") {
      this.#facts = { ...this.#facts, isDiskFull: event.data.state === "full" };
      this.#transcript.calmly(noteBlock(formatDiskState(event.data)));
    }
    this.#soon();
  }

  /** Alerts the user according to the notice's level; this conversation's messages and all questions are visible already. */
  #tell(notice: Notice): void {
    const { level, kind, conversation, text } = notice;
    const isElsewhere = isFromElsewhere(notice, this.#facts.conversation);
    if (isElsewhere) this.#transcript.calmly(noteBlock(kind === "news" ? text : `${conversation}: ${text}`));
    if (level !== "silent" && (isElsewhere || kind === "reply")) this.#attention.call(text);
  }

  /** Adjusts the number of waiting approvals before the next refresh from the daemon. */
  #count(by: 1 | -1): void {
    this.#facts = { ...this.#facts, approvals: Math.max(0, this.#facts.approvals + by) };
  }

  #key(key: Key): void {
    if (key.kind === "focus") return void this.#attention.focus(key.isFocused);
    if (this.#answeredBy(key)) return void this.#draw();
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
        // Send first and draw a moment later.
        return void this.#soon();
      }
      default:
        this.#speaker.act(action);
    }
    this.#draw();
  }

  /** A single key answers a question that has been read, unless something else is being typed. */
  #answeredBy(key: Key): boolean {
    if (key.kind !== "text" || this.#composer.text !== "") return false;
    const question = this.#questions.current();
    if (!question) return this.#reviews.press(key.text);
    if (!question.isSeen || !/^[yn]$/i.test(key.text)) return false;
    void this.#speaker.answer(question.approval.id, { decision: /y/i.test(key.text) ? "allow" : "deny", words: [] });
    return true;
  }

  /** Opens a wiki page in the user's editor. */
  async #editPage(text: string): Promise<string | undefined> {
    let edited: string | undefined;
    await this.#away(async () => {
      const left = await editOutside(text, this.#env);
      if ("text" in left) edited = left.text;
      else this.#say(troubleBlock(left.failed));
    });
    return edited;
  }

  #ownCommands() {
    return ownCommands({ home: this.#home, project: this.#folder });
  }

  /** Hands the terminal to another program until the work ends. */
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
    this.#facts = { ...this.#facts, conversation, tokens: 0, context: null };
    this.#todo = [];
    this.#transcript = new Transcript({ links: this.#looks.links, now: this.#now });
    this.#transcript.print(() => [[]]);
    this.#say(noteBlock(`conversation ${conversation}`));
    void this.#link.follow(conversation);
  }

  #say(block: Block): void {
    this.#transcript.print(block);
    this.#soon();
  }

  /** Draws at once if the last frame is old enough, otherwise as soon as it is. */
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
      asking: this.#questions.current()?.approval.owner.id,
      todo: this.#todo,
    });
    const frame = layOutLive(
      {
        underWay: this.#transcript.live(width),
        question: question.length > 0 ? question : this.#reviews.lines(),
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

  /** Redraws regularly while something is running, to show the elapsed time. */
  #tick(isBusy: boolean): void {
    if (isBusy) this.#ticking ??= setInterval(() => this.#draw(), TICK_MS);
    else {
      clearInterval(this.#ticking);
      this.#ticking = undefined;
    }
  }
}
