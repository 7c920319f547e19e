// Starts the built package under Node 24 with an empty home, sends it one message, and stops it.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const io = join(root, "bin", "io.js");
const home = mkdtempSync(join(tmpdir(), "io-smoke-"));
const deadline = Date.now() + 120_000;
const daemonFile = join(home, "io", "daemon.json");
const cache = process.env.npm_config_cache ?? join(homedir(), ".npm");

function run(file, args, extra = {}) {
  const left = deadline - Date.now();
  if (left <= 0) throw new Error("the smoke test took more than two minutes");
  const env = { PATH: process.env.PATH, HOME: home, IO_HOME: join(home, "io"), IO_PORT: "0", IO_ENGINE: "rehearsal", ...extra };
  const { status, stdout, stderr, error } = spawnSync(file, args, { cwd: home, env, encoding: "utf8", timeout: left });
  if (error || status !== 0) throw new Error(`${args.join(" ")} failed (${status ?? error}):\n${stdout}${stderr}`);
  return stdout.trim();
}

/** A process that has ended but was not yet reaped by its parent does not count. */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !existsSync(`/proc/${pid}/status`) || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // It has ended.
    return false;
  }
}

const pids = [];
try {
  const print = "console.log(process.execPath)";
  const found = { HOME: homedir(), npm_config_cache: cache };
  const node = run("npx", ["-y", "-p", "node@24", "node", "-e", print], found).split("\n").at(-1);
  const version = run(node, ["-p", "process.version"]);
  if (!version.startsWith("v24.")) throw new Error(`wanted Node 24, got ${version}`);
  run(node, [io, "start"]);
  const { pid } = JSON.parse(readFileSync(daemonFile, "utf8"));
  pids.push(pid, Number(readFileSync(join(home, "io", "sessions", `runtime-${pid}.pid`), "utf8")));
  const answer = run(node, [io, "send", "hello"]);
  if (answer === "") throw new Error("the answer is empty");
  run(node, [io, "stop"]);
  if (existsSync(daemonFile)) throw new Error("daemon.json is still there after the stop");
  const left = pids.filter(isAlive);
  if (left.length > 0) throw new Error(`processes are left after the stop: ${left.join(", ")}`);
  console.log(`smoke: started, answered and stopped under Node ${version}: ${answer.split("\n")[0]}`);
} catch (error) {
  console.error(`smoke: ${error.message}`);
  process.exitCode = 1;
} finally {
  if (existsSync(daemonFile)) pids.push(JSON.parse(readFileSync(daemonFile, "utf8")).pid);
  for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
