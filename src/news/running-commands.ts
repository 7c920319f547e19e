import { z } from "zod";
import type { Event } from "../protocol/events.ts";
import { readJson } from "../store/read-json.ts";
import type { State } from "../store/state.ts";

const KEY = "background:alive";
/** Only the newest are remembered. */
const MAX_COMMANDS = 100;
const MAX_TEXT = 200;
const RunningCommands = z.array(z.object({ id: z.string(), text: z.string() }));
type RunningCommand = z.infer<typeof RunningCommands>[number];

/** Stores which background commands are running: they die with the daemon, and the next start reports them. */
export function createRunningCommands(state: State) {
  const known = (): RunningCommand[] => readJson(RunningCommands, state.get(KEY)) ?? [];
  const keep = (commands: readonly RunningCommand[]) =>
    commands.length === 0 ? state.delete(KEY) : state.set(KEY, JSON.stringify(commands.slice(-MAX_COMMANDS)));
  return {
    heard({ type, data }: Event): void {
      if (type === "background.started") keep([...known(), { id: data.id, text: data.command.slice(0, MAX_TEXT) }]);
      if (type === "background.finished" && known().some(({ id }) => id === data.id))
        keep(known().filter(({ id }) => id !== data.id));
    },
    /** The commands that were running when the previous daemon ended; returned once. */
    takeEnded(): RunningCommand[] {
      const ended = known();
      if (ended.length > 0) keep([]);
      return ended;
    },
  };
}
