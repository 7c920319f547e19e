import { createLog } from "../../../src/lib/log.ts";
import { createRedactor } from "../../../src/lib/redact.ts";

/** A log that nobody reads, for programs that run outside the test runner. */
export const quietLog = createLog({
  redactor: createRedactor(),
  ...(process.env.SWARM_TEST_LOG && { echo: (line: string) => console.error(line) }),
});
