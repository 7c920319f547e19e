import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";

const log = createLog({ redactor: createRedactor(), echo: (line) => console.log(line) });

function callUndefined(): void {
  const nothing = JSON.parse("null");
  nothing.isNoFunction();
}

try {
  callUndefined();
} catch (cause) {
  log.error("a bug", { error: new Error("it went wrong", { cause }) });
}
