import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { exec } from "../exec.ts";
import type { FoundProgram } from "../programs.ts";
import { CONFINED, kernelFiles, OWN_PROCESSES } from "./kernel.ts";

/** How well commands can be kept from IO's secrets on this machine. */
export type SandboxStatus =
  | { kind: "hidden"; processes: boolean; detail: string }
  /** Commands run, but see what the user sees. */
  | { kind: "open"; detail: string };

/** Tries bubblewrap by actually hiding something: many systems have it installed and forbid it. */
export async function probeSandbox(bwrap: FoundProgram): Promise<SandboxStatus> {
  if (process.platform !== "linux") return { kind: "open", detail: `there is no bubblewrap on ${process.platform}` };
  if (bwrap.path === undefined) return { kind: "open", detail: `bubblewrap (bwrap) is not installed: ${bwrap.why}` };
  const folder = mkdtempSync(join(realOf(tmpdir()), "io-sandbox-"));
  try {
    const secret = join(folder, "inside", "secret");
    mkdirSync(dirname(secret));
    writeFileSync(secret, "");
    const hide = ["--tmpfs", dirname(secret), "--remount-ro", dirname(secret)];
    const look = ["--", "/bin/sh", "-c", 'test ! -e "$1" && echo hidden', "sh", secret];
    let why = "";
    for (const processes of [true, false]) {
      const base = [...CONFINED, ...(processes ? OWN_PROCESSES : []), "--bind", "/", "/", ...kernelFiles({ processes })];
      const result = await exec(bwrap.path, [...base, ...hide, ...look], { deadlineMs: 5_000 });
      if (result.ending === "not-started")
        return { kind: "open", detail: `bubblewrap cannot be started: ${result.output.trim()}` };
      if (result.code === 0 && result.stdout.trim() === "hidden") {
        return { kind: "hidden", processes, detail: `bubblewrap works${processes ? "" : ", without a process list of its own"}` };
      }
      why = result.output.trim().split("\n")[0] ?? "";
    }
    return { kind: "open", detail: `bubblewrap is installed but may not be used here: ${why.slice(0, 200)}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
