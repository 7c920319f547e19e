import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findRuntime } from "../../src/engine/runtime/path.ts";

/**
 * A real Copilot runtime, except that it refuses `session.resume` with the given reasons, one per request, until none is left.
 */
export async function refusingRuntime(
  folder: string,
): Promise<{ path: string; refuse(...reasons: string[]): void; left(): boolean }> {
  const path = join(folder, "refusing-runtime.mjs");
  const reasons = join(folder, "refusals.json");
  writeFileSync(path, program(await findRuntime(process.env), reasons));
  chmodSync(path, 0o700);
  return {
    path,
    refuse: (...all) => writeFileSync(reasons, JSON.stringify(all)),
    left: () => existsSync(reasons),
  };
}

const program = (runtime: string, reasons: string) => `#!${process.execPath}
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
const child = spawn(${JSON.stringify(runtime)}, process.argv.slice(2), { stdio: ["pipe", "inherit", "inherit"] });
child.on("exit", (code) => process.exit(code ?? 1));
process.stdin.on("end", () => child.stdin.end());
const reasons = ${JSON.stringify(reasons)};
const refusal = () => {
  if (!existsSync(reasons)) return undefined;
  const [first, ...rest] = JSON.parse(readFileSync(reasons, "utf8"));
  if (rest.length > 0) writeFileSync(reasons, JSON.stringify(rest));
  else rmSync(reasons);
  return first;
};
let held = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  held = Buffer.concat([held, chunk]);
  for (;;) {
    const head = held.indexOf("\\r\\n\\r\\n");
    if (head < 0) return;
    const end = head + 4 + Number(/content-length: (\\d+)/i.exec(held.subarray(0, head).toString())[1]);
    if (held.length < end) return;
    const frame = held.subarray(0, end);
    held = held.subarray(end);
    const asked = JSON.parse(frame.subarray(head + 4).toString());
    const message = asked.method === "session.resume" ? refusal() : undefined;
    if (message === undefined) child.stdin.write(frame);
    else {
      const body = JSON.stringify({ jsonrpc: "2.0", id: asked.id, error: { code: -32603, message } });
      process.stdout.write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body);
    }
  }
});
`;
