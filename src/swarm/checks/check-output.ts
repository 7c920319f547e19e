import { withoutEscapes } from "../../project/reports/read.ts";

const EVERY_MS = 250;
/** Of a check that prints faster than anybody reads, only the end of each moment is told. */
const MOST = 8_000;

/** Tells what a check prints while it runs. */
export interface CheckOutput {
  begin(command: string): void;
  add(chunk: string): void;
  /** What is left, and how it ended. */
  end(exitCode: number | null): void;
}

/** Tells whole lines, a few times a second, without secrets: a line that is cut in two could hide one from the redactor. */
export function createCheckOutput(tell: (text: string) => void, clean: (text: string) => string): CheckOutput {
  let held = "";
  let isCut = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const say = (lines: string) => {
    if (lines === "") return;
    tell(`${isCut ? "…\n" : ""}${clean(withoutEscapes(lines))}`);
    isCut = false;
  };
  const flush = () => {
    timer = undefined;
    const whole = held.lastIndexOf("\n") + 1;
    const lines = held.slice(0, whole);
    held = held.slice(whole);
    say(lines);
  };
  return {
    begin: (command) => tell(`\n▸ $ ${clean(command)}\n`),
    add(chunk) {
      held += chunk;
      if (held.length > MOST) {
        const kept = held.slice(-MOST);
        held = kept.slice(kept.indexOf("\n") + 1);
        isCut = true;
      }
      timer ??= setTimeout(flush, EVERY_MS);
    },
    end(exitCode) {
      clearTimeout(timer);
      timer = undefined;
      say(held === "" || held.endsWith("\n") ? held : `${held}\n`);
      held = "";
      if (exitCode !== 0) tell(exitCode === null ? "✕ it did not come to an end\n" : `✕ exit ${exitCode}\n`);
    },
  };
}
