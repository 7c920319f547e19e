import type { Session, SessionSpec } from "../../engine/port.ts";
import type { RemoteWorkDeps, WorkOnWorkers } from "./on-workers.ts";
import type { RemoteFolder } from "./remote-job.ts";

export interface WorkPlace {
  /** The session as it is used here, or on a worker where one is to be had. */
  session(spec: SessionSpec, local: Session, options: { lasting: boolean }): Session;
}

/** Work that is done here, or on other hosts where there are any. Nothing of those is loaded before there is a cluster. */
export function createRemoteWork(deps: RemoteWorkDeps) {
  let loaded: WorkOnWorkers | undefined;
  const load = async (): Promise<WorkOnWorkers> => {
    const { createWorkOnWorkers } = await import("./on-workers.ts");
    loaded ??= createWorkOnWorkers(deps);
    return loaded;
  };

  return {
    /** Hears of what an earlier life sent out. */
    async start(): Promise<void> {
      const to = deps.dispatcher();
      if (to) (await load()).attach(to);
    },
    /** The place is asked for when a turn begins; without one it is done here. */
    at: (placeNow: () => RemoteFolder | undefined): WorkPlace => ({
      session: (spec, local, { lasting }) => ({
        id: spec.id,
        // Where it will be used is not known yet; a worker makes it with the first turn.
        prepare: async () => (deps.dispatcher() ? undefined : local.prepare()),
        async run(request) {
          const place = deps.dispatcher() && placeNow();
          return place ? (await load()).turn(place, { spec, request, lasting, local }) : local.run(request);
        },
      }),
    }),
    checks: async (...asked: Parameters<WorkOnWorkers["checks"]>): ReturnType<WorkOnWorkers["checks"]> =>
      deps.dispatcher() ? (await load()).checks(...asked) : undefined,
  };
}
export type RemoteWork = ReturnType<typeof createRemoteWork>;
