import type { ModelCall } from "../../protocol/usage.ts";
import type { WireFailure } from "./failure.ts";

/** Somebody who follows the calls of one session. */
export interface Observer {
  /** Something came from the provider. */
  alive(): void;
  /** A request is on its way to the provider. */
  asked?(): void;
  served(model: string): void;
  refused(words: string): void;
  failed(failure: WireFailure): void;
  /** A call that was served, whole or in part: also an answer continued, or a summary, of which the runtime does not know. */
  called(call: ModelCall): void;
  /** Waits until the next call may be made. Rejects with a `WireFailure` when it must not be. */
  permit?(): Promise<void>;
}
