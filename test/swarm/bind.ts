import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { exec } from "../../src/lib/exec.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import type { Store } from "../../src/store/open.ts";
import type { Bind } from "../../src/swarm/caller.ts";
import { createGate } from "../../src/tools/gate.ts";
import { ToolError, tool } from "../../src/tools/tool.ts";
import { quietLog } from "./quiet.ts";

const shell = tool({
  name: "shell",
  description: "Run a command.",
  schema: z.object({ command: z.string() }),
  kind: "effect",
  deadlineMs: 20_000,
  run: async ({ command }, { cwd, signal }) => {
    const result = await exec("/bin/sh", ["-c", command], { cwd, signal });
    return `exit code ${result.code}\n${result.output}`;
  },
});

const fileOps = (write: boolean) =>
  tool({
    name: "file_ops",
    description: "Read, write or list files.",
    schema: z.object({
      operation: z.enum(write ? ["read", "write", "list"] : ["read", "list"]),
      path: z.string(),
      content: z.string().optional(),
    }),
    kind: ({ operation }) => (operation === "write" ? "effect" : "read"),
    deadlineMs: 5_000,
    run: async ({ operation, path, content }, { cwd }) => {
      const full = join(cwd, path);
      try {
        if (operation === "list") return readdirSync(full).join("\n");
        if (operation === "read") return readFileSync(full, "utf8");
        mkdirSync(dirname(full), { recursive: true });
        writeFileSync(full, content ?? "");
        return "written";
      } catch (error) {
        throw new ToolError(String(error));
      }
    },
  });

/** The tools of pipeline agents behind the real gate. */
export function bindTools(store: Store): Bind {
  const gate = createGate({ store, redactor: createRedactor(), log: quietLog, policy: () => undefined });
  const tools = { shell, file_ops: fileOps(true), file_ops_read: fileOps(false) };
  return (names, scope) =>
    gate.bind(
      names.map((name) => tools[name]),
      scope,
    );
}
