import type { WriteStream } from "node:tty";
import { createWorkingLine } from "../tui/working.ts";
import type { Shell } from "./output.ts";

/** A status line for long operations. */
export interface WorkingLine {
  tell(what: string): void;
  end(): void;
}

/** Shows on a terminal that an operation takes time; silent elsewhere. */
export function startWorking({ env }: Pick<Shell, "env">, what: string): WorkingLine {
  if (!process.stderr.isTTY || env.CI || env.TERM === "dumb") return { tell: () => undefined, end: () => undefined };
  const line = createWorkingLine({ output: process.stderr as WriteStream, env });
  line.tell(what);
  return line;
}

export async function whileWorking<T>(
  shell: Pick<Shell, "env">,
  what: string,
  work: (tell: (what: string) => void) => Promise<T>,
): Promise<T> {
  const line = startWorking(shell, what);
  try {
    return await work(line.tell);
  } finally {
    line.end();
  }
}
