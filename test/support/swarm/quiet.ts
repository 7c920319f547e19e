import { createLog } from "../../../src/lib/log.ts";
import { createRedactor } from "../../../src/lib/redact.ts";

/** A log for programs outside the test runner. Prints nothing unless SWARM_TEST_LOG is set. */
export const quietLog = createLog({
  redactor: createRedactor(),
  ...(process.env.SWARM_TEST_LOG && { echo: (line: string) => console.error(line) }),
});
