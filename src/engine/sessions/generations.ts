import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { Handover, NO_HANDOVER } from "../wire/handover.ts";

/** An earlier version of IO stored only the text. */
const Stored = z.union([Handover, z.string().transform((summary) => ({ ...NO_HANDOVER, summary }))]);
const Generation = z.object({
  number: z.number().int().min(1),
  handover: Stored,
  /** Whether the runtime created its session: if that is missing later, it was lost. */
  begun: z.boolean().default(false),
});
type Generation = z.infer<typeof Generation>;

/**
 * A conversation may outgrow or lose its runtime session. It then continues in another that begins with a hand-over;
 * callers use the same id throughout.
 */
export function createGenerations(folder: string) {
  const place = join(folder, "generations");
  const fileOf = (id: string) => join(place, `${id}.json`);

  const read = (id: string): Generation => {
    const file = fileOf(id);
    try {
      if (existsSync(file)) return Generation.parse(JSON.parse(readFileSync(file, "utf8")));
    } catch {
      // A damaged file: the session is found by its plain id, or begun again.
    }
    return { number: 1, handover: NO_HANDOVER, begun: false };
  };
  const write = (id: string, generation: Generation) => {
    mkdirSync(place, { recursive: true, mode: 0o700 });
    writeFileAtomic(fileOf(id), JSON.stringify(generation), 0o600);
  };

  return {
    /** The current runtime session of a conversation, and its hand-over. */
    current(id: string): { session: string; handover: Handover; begun: boolean } {
      const { number, handover, begun } = read(id);
      return { session: number === 1 ? id : `${id}-g${number}`, handover, begun };
    },
    /** Records what the current session begins with. */
    hand: (id: string, handover: Handover) => write(id, { ...read(id), handover }),
    /** Records that the runtime created the current session. */
    begun(id: string): void {
      if (existsSync(fileOf(id))) write(id, { ...read(id), begun: true });
    },
    /** Begins the next generation. On disk when this returns. */
    next: (id: string, handover: Handover) => write(id, { number: read(id).number + 1, handover, begun: false }),
    forget: (id: string) => rmSync(fileOf(id), { force: true }),
    /** Whether a runtime session belongs to a conversation. */
    isOf: (id: string, session: string) =>
      session === id || /^-g\d+$/.test(session.startsWith(id) ? session.slice(id.length) : ""),
  };
}
export type Generations = ReturnType<typeof createGenerations>;
