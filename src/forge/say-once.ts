import { ForgeError, isPassing } from "./client.ts";
import type { Forge } from "./port.ts";
import { markOf } from "./text.ts";

/**
 * Comments on an issue or pull request, unless that was already done. IO recognises its comment by the mark in it, even if it
 * was killed before it knew that the comment had arrived.
 */
export async function sayOnce(forge: Forge, number: number, mark: string, body: string): Promise<void> {
  const isSaid = async () => (await forge.comments(number)).some((each) => each.body.trimEnd().endsWith(markOf(mark)));
  if (await isSaid()) return;
  await unlessDone(() => forge.comment(number, body), isSaid);
}

/**
 * Like `sayOnce` for a comment that may fail: returns why it could not be posted, for example because the issue is locked or
 * gone.
 */
export const sayIfTaken = (forge: Forge, number: number, mark: string, body: string): Promise<string | undefined> =>
  ifTaken(() => sayOnce(forge, number, mark, body));

/** Posts something, and returns why the forge does not accept it. Temporary failures are thrown. */
export async function ifTaken(say: () => Promise<void>): Promise<string | undefined> {
  try {
    await say();
    return undefined;
  } catch (error) {
    if (!(error instanceof ForgeError) || isPassing(error)) throw error;
    return `it could not be said there: ${error.message}`;
  }
}

/** Sends something and, if the response was lost, checks whether it arrived. */
export async function unlessDone(send: () => Promise<unknown>, isDone: () => Promise<boolean>): Promise<void> {
  try {
    await send();
  } catch (error) {
    if (!(error instanceof ForgeError) || error.kind !== "uncertain" || !(await isDone())) throw error;
  }
}
