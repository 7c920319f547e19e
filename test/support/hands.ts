import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import { ensureHome, pathsOf } from "../../src/home/paths.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { openStore } from "../../src/store/open.ts";
import { fileOps } from "../../src/tools/file-ops.ts";
import { createGate } from "../../src/tools/gate.ts";
import { createPathGuard } from "../../src/tools/guard.ts";
import { createPolicy } from "../../src/tools/policy.ts";
import type { ToolScope } from "../../src/tools/tool.ts";
import { removeFolder } from "./home.ts";
import { quietLog } from "./swarm/quiet.ts";

export interface Answered {
  ok: boolean;
  text: string;
}

/** A project, a data folder, and file_ops behind the real gate. Removed after the file's tests. */
export function createHands() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "io-hands-")));
  const project = join(root, "project");
  mkdirSync(project);
  const paths = pathsOf({ IO_HOME: join(root, "home"), HOME: root });
  ensureHome(paths);
  writeFileSync(paths.token, "hush-hush");
  const guard = createPathGuard({ paths, packageRoot: join(root, "package"), selfEdit: () => false });
  const store = openStore(":memory:");
  const gate = createGate({
    store,
    redactor: createRedactor(),
    log: quietLog,
    policy: createPolicy({ guard, keep: [paths.home] }),
  });
  let calls = 0;
  afterAll(async () => {
    store.close();
    await removeFolder(root);
  });

  return {
    root,
    project,
    paths,
    guard,
    at: (path: string) => join(project, path),
    write(files: Record<string, string | Buffer>): void {
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(project, path)), { recursive: true });
        writeFileSync(join(project, path), content);
      }
    },
    /** Makes one call, as the model would. */
    call(
      args: Record<string, unknown>,
      { write = true, searchMs = 30_000, signal = new AbortController().signal, ...scope }: Options = {},
    ) {
      calls += 1;
      const [bound] = gate.bind([fileOps({ guard, write, searchMs })], { cwd: project, actor: "orchestrator", ...scope });
      const invocation = { callId: `c${calls}`, sessionId: "s", owner: "m", attempt: 1, signal, flush: async () => {} };
      return bound!.call(args, invocation) as Promise<Answered>;
    },
    states: () => gate.callsOf("m").map(({ state }) => state),
  };
}

interface Options extends Partial<ToolScope> {
  /** False for a reviewer, whose tool cannot write. */
  write?: boolean;
  searchMs?: number;
  signal?: AbortSignal;
}
