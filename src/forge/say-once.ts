import { ForgeError, isPassing } from "./client.ts";
import type { Forge } from "./port.ts";
import { markOf } from "./text.ts";

/**
 * Comments on an issue or a pull request unless that was done before: IO finds its comment by the mark in it, also when it was
 * killed before it heard that the comment had arrived.
 */
export async function sayOnce(forge: Forge, number: number, mark: string, body: string): Promise<void> {
  const isSaid = async () => (await forge.comments(number)).some((each) => each.body.trimEnd().endsWith(markOf(mark)));
  if (await isSaid()) return;
  await unlessDone(() => forge.comment(number, body), isSaid);
}

/** The same where it is not what counts: says why it could not be said, as on an issue that is locked or gone. */
export const sayIfTaken = (forge: Forge, number: number, mark: string, body: string): Promise<string | undefined> =>
  ifTaken(() => sayOnce(forge, number, mark, body));

/** Says why a forge does not take what is said. */
export async function ifTaken(say: () => Promise<void>): Promise<string | undefined> {
  try {
    await say();
    return undefined;
  } catch (error) {
    if (!(error instanceof ForgeError) || isPassing(error)) throw error;
    return `it could not be said there: ${error.message}`;
  }
}

/** Sends something, and looks whether it arrived where the answer was lost. */
export async function unlessDone(send: () => Promise<unknown>, isDone: () => Promise<boolean>): Promise<void> {
  try {
    await send();
  } catch (error) {
    if (!(error instanceof ForgeError) || error.kind !== "uncertain" || !(await isDone())) throw error;
  }
}
