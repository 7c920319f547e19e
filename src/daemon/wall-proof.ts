import { existsSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { findDaemon } from "../home/daemon-file.ts";
import { type ProtectionSettings, protectionOf } from "../home/modes.ts";
import type { Paths } from "../home/paths.ts";
import { SandboxHeight } from "../home/safety-config.ts";
import { quotedForShell } from "../lib/invocation.ts";
import { packageRoot } from "../lib/package-root.ts";
import { realOf } from "../lib/real-path.ts";
import { exec } from "../process/exec.ts";
import { createSandbox, type Sandbox, type WallSettings, WORKSPACE_REMEDY } from "../process/sandbox.ts";
import { CONTAINER_SOCKETS } from "../process/wall/host-sockets.ts";
import { otherMountPoints } from "../process/wall/other-mounts.ts";
import type { Finding } from "../protocol/doctor.ts";
import { lockHolder } from "../store/lock.ts";
import { createPathGuard } from "../tools/guard.ts";
import { withScratchFolder } from "./scratch.ts";

export interface WallProofDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  settings: WallSettings;
}

/** Something that a command must not be able to do, tried in a form that is harmless if it succeeds. */
interface Attempt {
  /** The words for a sandbox that held. */
  held: string;
  /** A shell test that succeeds if the sandbox is open. */
  test: string;
  notAt?: SandboxHeight;
}

/** A command that could write to the data folder leaves this there, briefly. */
const TRACE = "wall-proof";
const PROCESSES_REMEDY =
  "Allow bubblewrap a process list of its own (containers: --security-opt systempaths=unconfined), or run IO as a user of its own; docs/security.md says what is open until then.";
const SECRETS_REMEDY =
  "Install bubblewrap and allow user namespaces, or run IO as a user of its own; docs/security.md says what is open until then.";

/** Proves the sandbox at each height by trying to escape it. */
export async function proveSandbox({ paths, env, settings }: WallProofDeps): Promise<Finding[]> {
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => false });
  const at = (sandbox: SandboxHeight) =>
    createSandbox({ home: paths.home, guard, env, settings: () => ({ ...settings, sandbox }) });
  const { kind, detail } = await at("secrets").status();
  const wanted = protectionOf({ mode: "full", ...settings }).sandbox;
  const inForce = describeProtection(settings, kind === "open");
  if (kind === "open") {
    return wanted === "workspace"
      ? [
          {
            check: "sandbox",
            state: "failed",
            found: `"workspace" is set and every command is refused: ${detail}`,
            remedy: WORKSPACE_REMEDY,
          },
        ]
      : [{ check: "sandbox", state: "warning", found: `${detail}; ${inForce}`, remedy: SECRETS_REMEDY }];
  }
  if (!existsSync(paths.home) || !statSync(paths.home).isDirectory())
    return [{ check: "sandbox", state: "ok", found: `${detail}; it is tried once IO's folder is there` }];
  const proofs: Proof[] = [];
  for (const height of SandboxHeight.options) proofs.push(await proveHeight(at(height), height, paths));
  const held = proofs.filter(({ open }) => open.length === 0).map(({ height, held }) => `"${height}" held (${held.join(", ")})`);
  const found = [detail, inForce, ...held].join("; ");
  return [
    { check: "sandbox", state: "ok", found },
    ...proofs.flatMap((proof) => failureOf(proof, wanted)),
    ...otherExposures(paths, wanted),
  ];
}

/** The attempts at a height: those the sandbox stopped, and those it did not or that prove nothing. */
interface Proof {
  height: SandboxHeight;
  held: string[];
  open: string[];
  said: string;
}

async function proveHeight(sandbox: Sandbox, height: SandboxHeight, paths: Paths): Promise<Proof> {
  return withScratchFolder("io-wall-", async (folder) => {
    const attempts = attemptsOn(paths, folder).filter(({ notAt }) => notAt !== height);
    const script = attempts
      .map(({ test }, index) => `if ${test}; then echo open ${index}; else echo held ${index}; fi`)
      .join("\n");
    const shell = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
    const [program, ...args] = await sandbox.wrap([shell, "-c", `exec 2>/dev/null\n${script}`], folder);
    const attempt = () => exec(program, args, { deadlineMs: 20_000 });
    const first = await attempt();
    // An attempt that never ran proves nothing, so try again.
    const { stdout, output } = /^(?:open|held) /m.test(first.stdout) ? first : await attempt();
    rmSync(join(paths.home, TRACE), { force: true });
    const lines = new Set(stdout.split("\n"));
    const names = (isHeld: boolean) =>
      attempts.filter((_, index) => lines.has(`held ${index}`) === isHeld).map(({ held }) => held);
    return { height, held: names(true), open: names(false), said: output.trim().slice(-200) };
  });
}

/** The protection in force, in words. */
function describeProtection(
  { mode = "full", sandbox, approvals }: WallSettings & Partial<ProtectionSettings>,
  isOpen: boolean,
): string {
  const held = protectionOf({ mode, sandbox, approvals });
  const asked = { none: "nobody is asked", wall: "what wants out of it is asked for", effects: "every effect is asked for" };
  const open = held.approvals === "none" ? "nobody is asked" : "every command that is not known to read alone is asked for";
  return isOpen
    ? `in the mode "${mode}" commands run without a sandbox, and ${open}`
    : `in the mode "${mode}" commands run in the sandbox "${held.sandbox}", and ${asked[held.approvals]}`;
}

function failureOf({ height, open, said }: Proof, wanted: SandboxHeight): Finding[] {
  if (open.length === 0) return [];
  const found = `the wall at the height "${height}" was not shown to hold for: ${open.join(", ")} (${said})`;
  return [{ check: "sandbox", state: height === wanted ? "failed" : "warning", found, remedy: PROCESSES_REMEDY }];
}

/** Changes nothing: files are opened but not written, the device node is discarded. */
function attemptsOn(paths: Paths, folder: string): Attempt[] {
  const daemon = findDaemon(paths, lockHolder);
  const shows = (place: string) =>
    `test -e ${quotedForShell(join(place, basename(paths.config)))} || test -e ${quotedForShell(join(place, basename(paths.database)))}`;
  return [
    {
      held: "IO's secrets are out of sight",
      test: [paths.home, ...otherMountPoints(realOf(paths.home))].map(shows).join(" || "),
    },
    { held: "IO's folder cannot be written", test: `touch ${quotedForShell(join(paths.home, TRACE))}` },
    {
      held: "nor can anything outside the project",
      test: writes(`${quotedForShell(packageRoot)}/package.json`),
      notAt: "secrets",
    },
    {
      held: "IO's process cannot be looked into",
      test: `test "$(readlink /proc/${process.pid}/exe)" = ${quotedForShell(process.execPath)}`,
    },
    { held: "no device node can be made", test: `mknod ${quotedForShell(join(folder, "node"))} c 1 3` },
    { held: "the kernel's settings cannot be written", test: "(: >> /proc/sys/kernel/core_pattern)" },
    { held: "no capability is left", test: `! grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status` },
    ...(daemon ? [{ held: "IO's port does not serve it", test: reaches(daemon.host, daemon.port) }] : []),
  ];
}

/** Opens one of our files and writes nothing. An empty one was only just created, in a sandbox whose writes are discarded. */
const writes = (file: string) => `(: >> ${file}) && test -s ${file}`;

/** Asks the daemon with bash's own means, since no other program is certain to exist. */
function reaches(host: string, port: number): string {
  const plain = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  const ask = `printf 'GET /api/health HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3`;
  return `(exec 3<>/dev/tcp/${plain}/${port}; ${ask}) | grep -q ' 200'`;
}

/** What the sandbox cannot prevent, or only as far as it knows. */
function otherExposures(paths: Paths, wanted: SandboxHeight): Finding[] {
  const others = otherMountPoints(realOf(paths.home));
  const sockets = CONTAINER_SOCKETS.filter((path) => existsSync(path));
  const mounted: Finding = {
    check: "sandbox",
    state: "warning",
    found: `the data folder can also be seen at ${others.join(", ")}; commands see nothing there`,
    remedy: "Unmount it there, or keep the data folder where no other mount shows it.",
  };
  const containers: Finding = {
    check: "sandbox",
    state: "warning",
    found: `commands can use ${sockets.join(", ")}, and who may start containers can see every file`,
    remedy: 'Set "sandbox" to "workspace" in config.json, or run IO as a user who may not start containers.',
  };
  return [...(others.length > 0 ? [mounted] : []), ...(sockets.length > 0 && wanted === "secrets" ? [containers] : [])];
}
