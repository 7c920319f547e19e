import type { Log } from "../../lib/log.ts";
import type { Outgoing } from "./carrier.ts";
import { completions } from "./completions.ts";
import { type Context, roomFor } from "./context.ts";
import { type Body, type Dialect, type Ending, GO_ON, type Wire, withoutTools } from "./dialect.ts";
import { readRefusal, WireFailure, windowIn } from "./failure.ts";
import { messages } from "./messages.ts";
import type { Observer } from "./observer.ts";
import { type Change, fitted, lessonIn } from "./parameters.ts";
import { createIllustrator, type PictureOf, pictureTokens } from "./pictures.ts";
import { permitted, received, type Sent } from "./received.ts";
import { responses } from "./responses.ts";
import { readStream, type StreamEvent, toJson } from "./stream.ts";
import { parsed } from "./stream-errors.ts";
import type { Incoming, Transport } from "./transport.ts";

/** What is known of a model, and what its answers teach. */
export interface ModelKnowledge {
  /** Tokens of prompt and answer together. */
  window(model: string): number;
  /** A refusal named a smaller window, or proved the assumed one too large. */
  learnWindow(model: string, tokens: number): void;
  /** The most tokens of an answer. */
  maxOutput(model: string): number;
  reasons(model: string): boolean | undefined;
  hasTools(model: string): boolean;
  /** Whether it is known to support pictures. */
  sees(model: string): boolean;
  lessons(model: string): readonly Change[];
  learn(model: string, change: Change): void;
}

/** A model call as the runtime made it. */
export interface Exchange {
  wire: Wire;
  session: string;
  body: Body;
  address(model: string, request: { hasPictures: boolean }): { url: string; headers: Record<string, string> };
  signal: AbortSignal;
  observer: Observer;
}

export interface ExchangerDeps {
  transport: Transport;
  context: Context;
  knowledge: ModelKnowledge;
  /** The pictures that a session's texts refer to. */
  pictureOf: PictureOf;
  /** Whether the embedded rehearsal model answers. */
  rehearsal: boolean;
  log: Log;
}

export const DIALECTS: Record<Wire, Dialect> = { completions, responses, messages };

const MAX_LESSONS = 8;
const MAX_SHRINKS = 3;
/** An answer that is cut more often than this will never end. */
const MAX_PARTS = 20;

/** Makes one model call for the runtime: with accepted parameters, within the window, to the end of the answer. */
export function createExchanger({ transport, context, knowledge, pictureOf, rehearsal, log }: ExchangerDeps) {
  const pictures = createIllustrator(pictureOf);
  /** The lines of the answer as they arrive. Throws a `WireFailure`, which can be a status until the first line was sent. */
  async function* answer(exchange: Exchange): AsyncGenerator<string> {
    const { wire, session, body } = exchange;
    const dialect = DIALECTS[wire];
    const assembler = dialect.assemble();
    let isCut = true;
    let why = `it reached the model's output limit ${MAX_PARTS} times`;
    for (let part = 0; isCut && part < MAX_PARTS; part += 1) {
      const asked = part === 0 ? body : continued(dialect, body, assembler.text());
      yield* permitted(exchange.observer);
      const sent = await post(exchange, asked, session).catch((error: unknown) => {
        if (part === 0 || !isFinal(error)) throw error;
        why = `the provider did not let it go on (${error.message.slice(0, 200).toWellFormed()})`;
      });
      if (!sent) break;
      const ending = yield* received(sent, assembler, exchange.observer);
      note(exchange, ending, sent);
      isCut = ending.cut;
    }
    yield* assembler.finish(isCut ? `\n\n[The answer was cut here: ${why}.]` : undefined);
    context.answered(session, assembler.text());
  }

  function note({ observer }: Exchange, { model, refusal, tokens }: Ending, { body: sent, hasPictures }: Sent): void {
    if (model) observer.served(model);
    if (refusal) observer.refused(refusal);
    // Nobody reports how many of the tokens a picture took.
    if (!hasPictures) context.counted(sent.model, sent, tokens.input);
  }

  /** A question of IO's own, outside the conversation. */
  async function ask(exchange: Exchange, body: Body): Promise<string> {
    const assembler = DIALECTS[exchange.wire].assemble();
    await exchange.observer.permit?.();
    const sent = await post(exchange, body, undefined);
    for await (const _ of received(sent, assembler, exchange.observer));
    assembler.finish();
    return assembler.text();
  }

  /** Sends a request until it is accepted, learning from each instructive refusal. */
  async function post(exchange: Exchange, asked: Body, session: string | undefined): Promise<Sent> {
    const { wire, observer, signal } = exchange;
    const dialect = DIALECTS[wire];
    const { model } = asked;
    const named = session === undefined ? 0 : pictureTokens(dialect, asked);
    let lessons = 0;
    let blamed: string[] = [];
    for (let shrinks = 0; ; ) {
      const window = knowledge.window(model);
      const room = roomFor(window);
      const sees = knowledge.sees(model);
      const textRoom = sees ? room - Math.min(named, Math.floor(room / 2)) : room;
      const short =
        session === undefined ? asked : await context.within(session, dialect, asked, textRoom, (body) => ask(exchange, body));
      // A summary was a separate call.
      if (short !== asked) await observer.permit?.();
      const started = performance.now();
      const text = fitted(wire, knowledge.hasTools(model) ? short : withoutTools(short), {
        lessons: knowledge.lessons(model),
        reasons: knowledge.reasons(model),
        maxOutput: Math.min(knowledge.maxOutput(model), window - room),
      });
      const { body, shown } =
        session === undefined || named === 0
          ? { body: text, shown: [] }
          : await pictures.illustrate({ session, dialect, sees, blamed }, text);
      const hasPictures = shown.length > 0;
      const place = exchange.address(model, { hasPictures });
      const answered = send(exchange, { method: "POST", ...place, body: toJson(body), signal });
      setImmediate(() => observer.asked?.());
      const incoming = await answered;
      observer.alive();
      if (incoming.status >= 300 && incoming.status < 400) throw moved(incoming);
      if (incoming.status < 400) {
        pictures.refuse(model, blamed);
        const events = await eventsOf(dialect, incoming, observer);
        return { body: text, hasPictures, started, rehearsal, events, close: () => incoming.close?.() };
      }
      const refusal = readRefusal(incoming.status, await textOf(incoming), incoming.headers);
      const lesson = lessons < MAX_LESSONS ? lessonIn(refusal, text) : undefined;
      if (lesson) {
        lessons += 1;
        knowledge.learn(model, lesson);
        log.info("a provider does not take a parameter; it is left out from now on", { model, ...lesson });
        continue;
      }
      if (refusal.fault === "too long" && session !== undefined && shrinks < MAX_SHRINKS) {
        shrinks += 1;
        const said = windowIn(refusal.message);
        const known = knowledge.window(model);
        const smaller = Math.floor(Math.min(known, estimateOf(text)) * 0.7);
        knowledge.learnWindow(model, said !== undefined && said < known ? said : Math.max(1_024, smaller));
        log.warn("a conversation was too long for its model and is shortened", { model, window: knowledge.window(model) });
        continue;
      }
      // One refused picture would fail every later turn of its conversation.
      if (hasPictures && [400, 413, 415, 422].includes(refusal.status)) {
        blamed = shown;
        log.warn("a provider refused a request with pictures; it is asked without them", { model, why: refusal.message });
        continue;
      }
      throw refusal;
    }
  }

  async function send({ observer }: Exchange, request: Outgoing): Promise<Incoming> {
    try {
      return await transport(request);
    } catch (error) {
      if (error instanceof WireFailure) observer.failed(error);
      throw error;
    }
  }

  return { answer };
}
export type Exchanger = ReturnType<typeof createExchanger>;

/** Whether the same request would be refused again. */
function isFinal(error: unknown): error is WireFailure {
  return error instanceof WireFailure && error.fault !== "network" && error.status < 500 && error.status !== 429;
}

function continued(dialect: Dialect, body: Body, text: string): Body {
  const before = dialect.items(body).map(({ raw }) => raw);
  return dialect.withItems(body, [...before, dialect.said("assistant", text), dialect.said("user", GO_ON)]);
}

function estimateOf(body: Body): number {
  return Math.ceil(JSON.stringify(body).length / 4);
}

/** Redirects are not followed, because the key would be sent along. */
function moved({ status, headers, close }: Incoming): WireFailure {
  close?.();
  const place = headers.location ? `to ${headers.location}` : "elsewhere, without saying where";
  return new WireFailure(`the provider's address has moved ${place}`, { status });
}

/** The events of an answer, also of an unstreamed one. Throws for an error that was sent as an answer. */
async function eventsOf(dialect: Dialect, incoming: Incoming, observer: Observer): Promise<AsyncIterable<StreamEvent>> {
  if (!/json|html|plain/.test(incoming.headers["content-type"] ?? "")) return readStream(incoming.body, observer.alive);
  const text = await textOf(incoming);
  if (/^\s*(?:data|event|id|:)/.test(text)) return readStream(only(new TextEncoder().encode(text)), observer.alive);
  const whole = /^\s*\{/.test(text) ? parsed(text) : undefined;
  const events = whole && whole.error === undefined ? dialect.unstreamed(whole) : undefined;
  if (!events) throw readRefusal(400, text);
  return only(...events);
}

async function* only<T>(...values: T[]): AsyncGenerator<T> {
  yield* values;
}

export async function textOf({ body }: Incoming): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > 1_000_000) break;
  }
  return text + decoder.decode();
}
