import type { WriteStream } from "node:tty";
import { createWorkingLine } from "../tui/working.ts";
import type { Shell } from "./output.ts";

/** Shows on a terminal that something takes its time, and what it is at; silent everywhere else. */
export async function whileWorking<T>(
  { env }: Shell,
  what: string,
  work: (tell: (what: string) => void) => Promise<T>,
): Promise<T> {
  if (!process.stderr.isTTY || env.CI || env.TERM === "dumb") return work(() => undefined);
  const line = createWorkingLine({ output: process.stderr as WriteStream, env });
  line.tell(what);
  try {
    return await work(line.tell);
  } finally {
    line.end();
  }
}
