import { z } from "zod";
import type { Event } from "../protocol/events.ts";
import { readJson } from "../store/read-json.ts";
import type { State } from "../store/state.ts";

const KEY = "background:alive";
/** More than this many are not remembered. */
const MOST = 100;
const MAX_TEXT = 200;
const Alive = z.array(z.object({ id: z.string(), text: z.string() }));
type AliveCommand = z.infer<typeof Alive>[number];

/** Remembers which commands run in the background: they end with the daemon, and a person is told of that. */
export function createAliveCommands(state: State) {
  const known = (): AliveCommand[] => readJson(Alive, state.get(KEY)) ?? [];
  const keep = (commands: readonly AliveCommand[]) =>
    commands.length === 0 ? state.delete(KEY) : state.set(KEY, JSON.stringify(commands.slice(-MOST)));
  return {
    heard({ type, data }: Event): void {
      if (type === "background.started") keep([...known(), { id: data.id, text: data.command.slice(0, MAX_TEXT) }]);
      if (type === "background.finished" && known().some(({ id }) => id === data.id))
        keep(known().filter(({ id }) => id !== data.id));
    },
    /** Those that an earlier life had running, told once. */
    takeEnded(): AliveCommand[] {
      const ended = known();
      if (ended.length > 0) keep([]);
      return ended;
    },
  };
}
