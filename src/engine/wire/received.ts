import type { Assembler, Body, Ending } from "./dialect.ts";
import type { Observer } from "./observer.ts";
import type { StreamEvent } from "./stream.ts";

/** An accepted request, and its answer. */
export interface Sent {
  /** Without its pictures. */
  body: Body;
  hasPictures: boolean;
  started: number;
  /** Whether the embedded rehearsal model answers. */
  rehearsal: boolean;
  events: AsyncIterable<StreamEvent>;
  close: () => void;
}

/** How often the runtime is told that a call is waiting. */
const REMARK_MS = 60_000;
/** How long a connection may take to close after the answer has ended. */
const DRAIN_MS = 1_000;

/** Waits until the call may be made. The runtime abandons a model after ten silent minutes, so it gets a comment now and then. */
export async function* permitted(observer: Pick<Observer, "permit">): AsyncGenerator<string> {
  const permit = observer.permit?.();
  if (!permit) return;
  const done = permit.then(() => true);
  done.catch(() => undefined);
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const later = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, REMARK_MS, false);
    });
    const isDone = await Promise.race([done, later]).finally(() => clearTimeout(timer));
    if (isDone) return;
    yield ": waiting for a person\n\n";
  }
}

/** The lines of one stream. The call is counted however it ends, because the provider charges for it. */
export async function* received(
  sent: Sent,
  assembler: Assembler,
  observer: Pick<Observer, "called">,
): AsyncGenerator<string, Ending> {
  let ending: Ending | undefined;
  try {
    for await (const event of untilOver(sent, assembler)) yield* assembler.take(event);
    ending = assembler.ended();
    return ending;
  } finally {
    const { model = sent.body.model, tokens } = ending ?? assembler.soFar();
    observer.called({
      model,
      inputTokens: tokens.input,
      outputTokens: tokens.output,
      cacheReadTokens: tokens.cached,
      durationMs: Math.round(performance.now() - sent.started),
      ...(sent.rehearsal && { rehearsal: true }),
    });
  }
}

/** The events of a stream until the provider ends it. Nobody waits for the connection to close. */
async function* untilOver({ events, close }: Sent, assembler: Assembler): AsyncGenerator<StreamEvent> {
  const iterator = events[Symbol.asyncIterator]();
  let isLeft = true;
  try {
    for (;;) {
      const { value, done } = await iterator.next();
      if (done) {
        isLeft = false;
        return;
      }
      yield value;
      if (assembler.isOver()) {
        isLeft = false;
        void drain(iterator, close);
        return;
      }
    }
  } finally {
    if (isLeft) close();
  }
}

/** Reads a connection to its end so that it can be reused, or closes it if the end does not come. */
async function drain(iterator: AsyncIterator<unknown>, close: () => void): Promise<void> {
  const late = setTimeout(close, DRAIN_MS).unref();
  try {
    while (!(await iterator.next()).done);
  } catch {
    // The answer was already complete.
  } finally {
    clearTimeout(late);
  }
}
