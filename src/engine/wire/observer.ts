import type { ModelCall } from "../../protocol/usage.ts";
import type { WireFailure } from "./failure.ts";

/** Follows the calls of one session. */
export interface Observer {
  /** Something arrived from the provider. */
  alive(): void;
  /** A request is being sent to the provider. */
  asked?(): void;
  served(model: string): void;
  refused(words: string): void;
  failed(failure: WireFailure): void;
  /** A call was served, wholly or partly; includes continuations and summaries, which the runtime does not see. */
  called(call: ModelCall): void;
  /** Waits until the next call may be made. Rejects with a `WireFailure` if it must not be. */
  permit?(): Promise<void>;
}
