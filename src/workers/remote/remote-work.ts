import type { Session, SessionSpec } from "../../engine/port.ts";
import type { RemoteWorkDeps, WorkOnWorkers } from "./on-workers.ts";
import type { RemoteFolder } from "./remote-job.ts";

export interface WorkPlace {
  /** A session that runs on a worker if one is available, else here. */
  session(spec: SessionSpec, local: Session, options: { lasting: boolean }): Session;
}

/** Work that runs here, or on other hosts if there are any. The code for workers loads only when there is a cluster. */
export function createRemoteWork(deps: RemoteWorkDeps) {
  let loaded: WorkOnWorkers | undefined;
  const load = async (): Promise<WorkOnWorkers> => {
    const { createWorkOnWorkers } = await import("./on-workers.ts");
    loaded ??= createWorkOnWorkers(deps);
    return loaded;
  };

  return {
    /** Starts listening to jobs sent before a restart. */
    async start(): Promise<void> {
      const to = deps.dispatcher();
      if (to) (await load()).attach(to);
    },
    /** Asks for the place when a turn begins; without one the turn runs here. */
    at: (placeNow: () => RemoteFolder | undefined): WorkPlace => ({
      session: (spec, local, { lasting }) => ({
        id: spec.id,
        // It is not known yet where the session will run; a worker creates it with the first turn.
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
