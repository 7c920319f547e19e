import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeFileAtomic } from "../lib/atomic.ts";

const Generation = z.object({ number: z.number().int().min(1), handover: z.string() });
type Generation = z.infer<typeof Generation>;

/**
 * A conversation may outgrow the runtime's session it began in, or lose it. Then it goes on in another, which begins with
 * what was handed over; callers know it by one id all the while.
 */
export function createGenerations(folder: string) {
  const place = join(folder, "generations");
  const fileOf = (id: string) => join(place, `${id}.json`);

  const read = (id: string): Generation => {
    const file = fileOf(id);
    try {
      if (existsSync(file)) return Generation.parse(JSON.parse(readFileSync(file, "utf8")));
    } catch {
      // A file that is no longer whole: its session is found by the plain id, or begun anew.
    }
    return { number: 1, handover: "" };
  };
  const write = (id: string, generation: Generation) => {
    mkdirSync(place, { recursive: true, mode: 0o700 });
    writeFileAtomic(fileOf(id), JSON.stringify(generation), 0o600);
  };

  return {
    /** The runtime's own session for a conversation now, and what it was handed. */
    current(id: string): { session: string; handover: string } {
      const { number, handover } = read(id);
      return { session: number === 1 ? id : `${id}-g${number}`, handover };
    },
    /** Notes what the current one begins with. */
    hand: (id: string, handover: string) => write(id, { ...read(id), handover }),
    /** Begins the next one. On disk when this returns. */
    next: (id: string, handover: string) => write(id, { number: read(id).number + 1, handover }),
    forget: (id: string) => rmSync(fileOf(id), { force: true }),
    /** Whether a session of the runtime is one of a conversation's. */
    isOf: (id: string, session: string) =>
      session === id || /^-g\d+$/.test(session.startsWith(id) ? session.slice(id.length) : ""),
  };
}
export type Generations = ReturnType<typeof createGenerations>;
