import { pathsOf } from "../../../src/home/paths.ts";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { createRedactor } from "../../../src/lib/redact.ts";
import { createSandbox, type Sandbox } from "../../../src/process/sandbox.ts";
import type { Store } from "../../../src/store/open.ts";
import type { Bind } from "../../../src/swarm/agents/agent-sessions.ts";
import { fileOps } from "../../../src/tools/file-ops.ts";
import { createGate } from "../../../src/tools/gate.ts";
import { createPathGuard } from "../../../src/tools/guard.ts";
import { createPolicy } from "../../../src/tools/policy.ts";
import { shell } from "../../../src/tools/shell.ts";
import { quietLog } from "./quiet.ts";

/** The tools of pipeline agents behind the real gate, as the daemon sets them up. */
export function bindTools(store: Store, home: string, sandbox?: Sandbox): Bind {
  const redactor = createRedactor();
  const guard = createPathGuard({ paths: pathsOf({ IO_HOME: home }), packageRoot, selfEdit: () => false });
  const gate = createGate({ store, redactor, log: quietLog, policy: createPolicy({ guard, keep: [home] }) });
  const tools = {
    shell: shell({ sandbox: sandbox ?? createSandbox({ home, guard }), redactor, env: { PATH: process.env.PATH, HOME: home } }),
    file_ops: fileOps({ guard, write: true }),
    file_ops_read: fileOps({ guard, write: false }),
  };
  return (names, scope) =>
    gate.bind(
      names.map((name) => tools[name]),
      scope,
    );
}
