import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { expandCommand, type OwnCommand } from "../home/own-command.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Event } from "../protocol/events.ts";
import { type NamedPicture, picturesIn, withAttachments } from "./attach.ts";
import { decideApproval } from "./commands/control.ts";
import { Conversations } from "./commands/conversations.ts";
import { ASKED, commandIn, helpText, isBuiltIn, unknownCommand } from "./commands/index.ts";
import type { Composer, Wanted } from "./composer.ts";
import { type Questions, yesOrNo } from "./questions.ts";
import type { Reviews } from "./reviews.ts";
import { type Block, columnsBlock, differenceBlock, noteBlock, plainBlock, troubleBlock } from "./transcript/blocks.ts";
import type { JournalCall } from "./transcript/tools.ts";
import { matching, type Transcript } from "./transcript/transcript.ts";

export interface SpeakerDeps {
  /** Undefined while the daemon is unreachable. */
  client: () => Client | undefined;
  transcript: () => Transcript;
  questions: Questions;
  reviews: Pick<Reviews, "begin">;
  conversation: () => string;
  /** The commands written by the user or for the project. */
  ownCommands: () => OwnCommand[];
  /** The folder that typed paths start from. */
  cwd: string;
  composer: Composer;
  say: (block: Block) => void;
  write: (bytes: string) => void;
  goTo: (conversation: string) => void;
  leave: () => void;
  onChange: () => void;
}

/** A message being sent, which may have to be sent again. */
interface Sending {
  text: string;
  /** The text with its attachments. */
  whole: string;
  key: string;
  pictures: NamedPicture[];
  /** The IDs of the pictures, once they are uploaded. */
  attachments?: string[];
}

const AWAY = "not sent: the daemon does not answer. Your line is kept; Enter sends it once the daemon is back.";

/** Does what a line says (send, steer, queue, decide or run a command) and what keys ask of the running turn. */
export class Speaker {
  readonly #deps: SpeakerDeps;
  readonly #conversations: Conversations;
  readonly #sending = new Map<string, { text: string; onHeard: () => void }>();
  /** Requests that have not been answered yet. */
  readonly #onItsWay = new Set<Promise<unknown>>();
  #unsure: Sending | undefined;

  constructor(deps: SpeakerDeps) {
    this.#deps = deps;
    this.#conversations = new Conversations(deps);
  }

  /** Texts that were sent but are not in the transcript yet. */
  get sending(): string[] {
    return [...this.#sending.values()].map(({ text }) => text);
  }

  /** Waits, up to a time limit, for pending requests to be answered. Returns the messages that did not arrive. */
  async arrived(withinMs: number): Promise<string[]> {
    const late = sleep(withinMs, "late" as const);
    // A loop, because text that came too late for a turn is sent again as a message.
    while (this.#onItsWay.size > 0 && (await Promise.race([Promise.allSettled(this.#onItsWay), late])) !== "late");
    return [...this.sending, ...(this.#unsure ? [this.#unsure.text] : [])];
  }

  hear(event: Event): void {
    if (!event.type.startsWith("message.") || !("id" in event.data)) return;
    if (event.type === "message.queued" && event.data.source.channel === "tui") {
      const { text } = event.data;
      const own = [...this.#sending].find(([, sent]) => sent.text === text);
      own?.[1].onHeard();
      if (own) this.#sending.delete(own[0]);
    }
  }

  submit(how: "send" | "queue"): void {
    const { composer, say, questions, transcript, client } = this.#deps;
    const text = composer.text.trim();
    if (text === "") return;
    const command = commandIn(text);
    const isLocal = command && ["help", "quit", "exit", "copy"].includes(command.name);
    if (!client() && !isLocal) return void say(noteBlock(AWAY));
    const question = command ? undefined : questions.current();
    const answer = question && yesOrNo(text);
    // A user who was just typing "yes" has not read the question, so the line waits for another Enter.
    if (answer && !question.isSeen) return;
    composer.sent();
    const own = command && this.#ownCommand(command.name);
    if (command && !own) return void this.#command(command.name, command.rest);
    if (answer) return void this.answer(question.approval.id, answer);
    const words = own ? expandCommand(own, command.rest) : text;
    const { turn } = transcript();
    // Pictures need a message of their own.
    if (turn && how === "send" && picturesIn(words, this.#deps.cwd).length === 0) void this.#follow(this.#steer(turn.id, words));
    else this.#send(words);
  }

  /** Finds a user's command. IO's commands take precedence. */
  #ownCommand(name: string): OwnCommand | undefined {
    return isBuiltIn(name) ? undefined : this.#deps.ownCommands().find((each) => each.name === name);
  }

  act(action: Wanted): void {
    const { transcript, say } = this.#deps;
    const { turn, waiting, lastCall } = transcript();
    if (action === "cancel" && turn) void this.attempt((client) => client.request("POST", `/api/messages/${turn.id}/cancel`));
    if (action === "mode") void this.#command("mode", "next");
    if (action === "takeBack") {
      const last = waiting.filter(({ source }) => source === "tui").at(-1);
      if (last) void this.#takeBack(last.id, last.text);
    }
    if (action === "unfold") {
      if (lastCall) void this.#unfold();
      else say(noteBlock("no tool was used yet"));
    }
  }

  /**
   * The request waits for the message's end, because then the daemon need not wait for the disk; events confirm earlier that it
   * arrived. A message that did not arrive goes back into the line and keeps its key for the next try.
   */
  #send(text: string): void {
    const again = this.#unsure?.text === text ? this.#unsure : undefined;
    const { cwd, onChange } = this.#deps;
    const sent = again ?? { key: randomUUID(), text, whole: withAttachments(text, cwd), pictures: picturesIn(text, cwd) };
    this.#unsure = undefined;
    const heard = new Promise<void>((onHeard) => this.#sending.set(sent.key, { text: sent.whole, onHeard }));
    onChange();
    void this.#follow(Promise.race([heard, this.#deliver(sent)]));
  }

  async #deliver(sent: Sending): Promise<void> {
    const { conversation, composer, client, onChange } = this.#deps;
    const { text, whole, key, pictures } = sent;
    try {
      const to = client();
      // The same files under the same key count as the same message.
      if (to) sent.attachments ??= await Promise.all(pictures.map(async ({ name, bytes }) => (await to.upload(name, bytes)).id));
      const { attachments = [] } = sent;
      const body = { text: whole, conversation: conversation(), source: "tui", idempotencyKey: key };
      await to?.request("POST", "/api/messages?wait=true", { ...body, ...(attachments.length > 0 && { attachments }) });
    } catch (error) {
      if (!this.#sending.has(key)) return;
      this.#trouble(error);
      this.#unsure = sent;
      if (composer.text === "") composer.write(text);
    } finally {
      this.#sending.delete(key);
      onChange();
    }
  }

  /** Answers a question, once. */
  async answer(id: string, answer: { decision: "allow" | "deny"; words: string[] }): Promise<void> {
    const { questions } = this.#deps;
    questions.answered(id);
    const told = await this.attempt((client) => decideApproval(client, { id, ...answer }));
    if (told === undefined) questions.answered(id, false);
  }

  /** Steers the running turn. If the turn has just ended, the text is sent as a message of its own. */
  async #steer(id: string, text: string): Promise<void> {
    const client = this.#deps.client();
    try {
      await client?.request("POST", `/api/messages/${id}/steer`, { text: withAttachments(text, this.#deps.cwd) });
    } catch (error) {
      if (error instanceof UserError && error.code === "conflict") return void this.#send(text);
      this.#trouble(error);
      if (this.#deps.composer.text === "") this.#deps.composer.write(text);
    }
  }

  async #takeBack(id: string, text: string): Promise<void> {
    const { composer, onChange } = this.#deps;
    const done = await this.attempt((client) => client.request("POST", `/api/messages/${id}/cancel`));
    if (done === undefined) return;
    composer.write(composer.text === "" ? text : `${text}\n${composer.text}`);
    onChange();
  }

  async #unfold(): Promise<void> {
    const { transcript, onChange, say } = this.#deps;
    const call = transcript().lastCall;
    if (!call) return;
    const found = matching(await this.#journal(call.message), call);
    if (found) transcript().unfold(call, found);
    else say(noteBlock("nothing is known of its result yet"));
    onChange();
  }

  async #journal(id: string): Promise<JournalCall[]> {
    const client = this.#deps.client();
    const asked = client?.request<{ items: JournalCall[] }>("GET", `/api/messages/${id}/calls?limit=500`);
    return (await asked?.catch(() => undefined))?.items ?? [];
  }

  async #command(name: string, rest: string): Promise<void> {
    const { say, leave, transcript, write, conversation } = this.#deps;
    const args = rest.split(/\s+/).filter(Boolean);
    if (name === "quit" || name === "exit") return leave();
    if (name === "help") return say(columnsBlock(helpText(this.#deps.ownCommands())));
    if (name === "copy") {
      const { lastReply } = transcript();
      if (lastReply === "") return say(noteBlock("there is no answer to copy yet"));
      write(`\x1b]52;c;${Buffer.from(lastReply).toString("base64")}\x07`);
      return say(noteBlock(`copied: ${lastReply.length} characters`));
    }
    if (name === "new") return void this.attempt((client) => this.#conversations.begin(client, args[0]));
    if (name === "conversation") return void this.attempt((client) => this.#conversations.goOrList(client, args[0]));
    if (name === "review" && rest === "") return void this.attempt((client) => this.#deps.reviews.begin(client));
    const command = ASKED.find((each) => each.name === name);
    if (!command) return say(noteBlock(unknownCommand(name, this.#deps.ownCommands())));
    await this.attempt(async (client) => {
      const told = await command.run({ client, conversation: conversation(), args, rest });
      say(command.name === "diff" ? differenceBlock(told) : plainBlock(told));
    });
  }

  #follow<T>(said: Promise<T>): Promise<T> {
    this.#onItsWay.add(said);
    void said.finally(() => this.#onItsWay.delete(said)).catch(() => undefined);
    return said;
  }

  /** Performs a request and prints its error; returns undefined if it fails. */
  async attempt<T>(work: (client: Client) => Promise<T>): Promise<T | undefined> {
    const client = this.#deps.client();
    try {
      if (!client) throw new UserError("The daemon does not answer just now.");
      return await this.#follow(work(client));
    } catch (error) {
      this.#trouble(error);
      return undefined;
    }
  }

  #trouble(error: unknown): void {
    this.#deps.say(troubleBlock(messageOf(error)));
  }
}
