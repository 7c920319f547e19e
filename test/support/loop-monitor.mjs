// Loaded into the daemons that tests start (--import). Logs every time that work on the main thread blocked the event loop.
// Time given to other processes does not count, so a busy machine raises no alarm; nor does time that the host took from a
// virtual machine, which the kernel charges to whatever thread was running. Durations are scaled to what the work would have
// taken on the quiet machine before the tests began.
import { appendFileSync, existsSync, openSync, readSync } from "node:fs";
import { measurePace } from "./pace.mjs";

const { IO_TEST_LOOP_LOG: file, IO_TEST_QUIET_PACE: quiet } = process.env;
delete process.env.IO_TEST_LOOP_LOG;
delete process.env.IO_TEST_QUIET_PACE;
const BEAT_MS = 10;
const LIMIT_MS = 100;
const MOST_SLOWED = 2.5;

/** Returns a function that reads the first line of a file of the kernel's; undefined if this system has no such file. */
function lineOf(path) {
  const line = Buffer.alloc(256);
  try {
    // Opened once: the monitor reads a hundred times a second, in every daemon that a test starts.
    const opened = openSync(path, "r");
    return () => line.latin1Slice(0, readSync(opened, line, 0, line.length, 0)).split("\n", 1)[0];
  } catch {
    return undefined;
  }
}

/** The time of the processor that the main thread has used; without Linux, that all threads have used. */
function createWorkedMs() {
  const read = lineOf(`/proc/self/task/${process.pid}/schedstat`);
  if (read) return () => Number(read().split(" ", 1)[0]) / 1e6;
  return () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };
}

/** Stolen time of all processors; the kernel counts it in ticks of 10 ms. */
function createStolenMs() {
  const read = lineOf("/proc/stat");
  return () => (read ? Number(read().split(/ +/)[8] ?? 0) * 10 : 0);
}

function slowedBy() {
  const now = measurePace(15) / Number(quiet);
  return Math.min(MOST_SLOWED, Math.max(1, now || 1));
}

if (file) {
  const workedMs = createWorkedMs();
  const stolenMs = createStolenMs();
  const look = () => ({ at: performance.now(), worked: workedMs(), stolen: stolenMs() });
  let last = look();
  setInterval(() => {
    const now = look();
    const own = Math.min(now.at - last.at, now.worked - last.worked) - (now.stolen - last.stolen);
    const beganAt = Date.now() - (now.at - last.at);
    // The file is there once the test watches: while the program starts, measuring the pace would only slow that down.
    const ms = own > LIMIT_MS && existsSync(file) ? Math.round(own / slowedBy()) : 0;
    if (ms > LIMIT_MS) appendFileSync(file, `${JSON.stringify({ beganAt, ms })}\n`);
    last = look();
  }, BEAT_MS).unref();
}
