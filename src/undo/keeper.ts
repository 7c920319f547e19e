import { dirname } from "node:path";
import { messageOf } from "../lib/errors.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { createTurnTaking } from "../lib/turn-taking.ts";
import { isWithin } from "../lib/within.ts";
import type { TurnChanges } from "../store/turn-changes.ts";
import type { ToolScope, Writes } from "../tools/tool.ts";
import { addNote, createEffects, type EffectsDeps, type OpenEffect } from "./effects.ts";
import { nestedRoots, type Root, rootsOf, submoduleRoots } from "./roots.ts";

export type KeeperDeps = Omit<EffectsDeps, "now"> & Partial<Pick<EffectsDeps, "now">>;

const OWNER = /^[mt]_[0-9a-z]+$/;

/** Snapshots what calls may change, one step at a time for each owner and folder. */
export function createKeeper({ now = () => new Date(), ...deps }: KeeperDeps) {
  const { rows, git, home, log } = deps;
  const effects = createEffects({ ...deps, now });
  const takeTurn = createTurnTaking();
  const pending = new Set<Promise<unknown>>();
  const restoring = new Map<string, Promise<unknown>>();
  const inTurn = <T>(owner: string, root: string, work: () => Promise<T>): Promise<T> => {
    const turn = takeTurn(`${owner}\0${root}`, work);
    const done = turn.then(
      () => undefined,
      () => undefined,
    );
    pending.add(done);
    void done.then(() => pending.delete(done));
    return turn;
  };

  /** Snapshots a folder and, if a command may change anything in it, the checkouts of other repositories inside it. */
  async function keep(owner: string, root: Root, begun: OpenEffect[]): Promise<void> {
    if (isWithin(realOf(home), root.path)) return;
    const effect = await inTurn(owner, root.path, async () => {
      await restoring.get(root.path);
      return effects.begin(owner, root);
    });
    if (effect === undefined) return;
    begun.push(effect);
    const { place } = effect.row;
    if (!place || root.paths !== null) return;
    const common = dirname(place.objects);
    const inside = [
      ...(place.kind === "git" ? await submoduleRoots(git, root.path, common) : []),
      ...nestedRoots(root.path, common, effect.nested),
    ];
    for (const inner of inside) await keep(owner, inner, begun);
  }

  function noteFailure(owner: string, root: string, why: string): void {
    log.warn("a folder could not be kept before an effect", { root, error: why });
    const row = rows.find(owner, root);
    if (!row) return;
    addNote(row, `${named(root, 300)} could not be kept before a change: ${why}`);
    rows.save(row);
  }

  return {
    /** Snapshots what a call may change, before it runs; returns a function to call when the call has ended. Never rejects. */
    async before(owner: string, writes: Writes, scope: Pick<ToolScope, "cwd">): Promise<() => void> {
      const begun: OpenEffect[] = [];
      try {
        for (const root of OWNER.test(owner) ? rootsOf(writes, scope, home) : [])
          await keep(owner, root, begun).catch((error: unknown) => noteFailure(owner, root.path, messageOf(error)));
      } catch (error) {
        log.warn("what a call may change could not be kept", { owner, error: messageOf(error) });
      }
      return () => {
        for (const effect of begun)
          inTurn(owner, effect.row.root, () => effects.end(effect)).catch((error: unknown) =>
            log.warn("what an effect changed could not be written down", { owner, error: messageOf(error) }),
          );
      };
    },
    /** Waits until everything that ended is recorded, then does work that no effect of the owner in that folder interrupts. */
    alone: inTurn,
    /** The same for work that writes to the folder: effects of other owners wait for it. */
    restoring: <T>(owner: string, root: string, work: () => Promise<T>): Promise<T> =>
      inTurn(owner, root, () => {
        const done = work();
        const settled = done.catch(() => undefined);
        restoring.set(root, settled);
        void settled.then(() => restoring.get(root) === settled && restoring.delete(root));
        return done;
      }),
    recover: (row: TurnChanges) => inTurn(row.owner, row.root, () => effects.recover(row)),
    /** Deletes the indexes of an owner that has ended, which no longer needs them. */
    settle(owner: string): void {
      for (const { root } of rows.of(owner)) {
        const work = inTurn(owner, root, async () => {
          const row = rows.find(owner, root);
          if (row?.place && !effects.isOpen(owner, root)) effects.indexOf({ ...row, place: row.place }).dropIndex();
        });
        work.catch((error: unknown) => log.warn("an index of ours could not be taken away", { owner, error: messageOf(error) }));
      }
    },
    /** Waits until everything that has ended so far is recorded. */
    caughtUp: async (): Promise<void> => void (await Promise.all(pending)),
    async close(): Promise<void> {
      while (pending.size > 0) await Promise.all(pending);
    },
    busyIn: effects.busyIn,
    indexOf: effects.indexOf,
    folderOf: effects.folderOf,
  };
}
export type Keeper = ReturnType<typeof createKeeper>;
