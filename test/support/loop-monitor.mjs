// Loaded into the daemons that tests start (--import). Logs every time that work on the main thread blocked the event loop.
// Time given to other processes does not count, so a busy machine raises no alarm; nor does time that the host took from a
// virtual machine, which the kernel charges to whatever thread was running. Durations are scaled to what the work would have
// taken on the quiet machine before the tests began.
import { appendFileSync, readFileSync } from "node:fs";
import { measurePace } from "./pace.mjs";

const { IO_TEST_LOOP_LOG: file, IO_TEST_QUIET_PACE: quiet } = process.env;
delete process.env.IO_TEST_LOOP_LOG;
delete process.env.IO_TEST_QUIET_PACE;
const BEAT_MS = 10;
const LIMIT_MS = 100;
const MOST_SLOWED = 2.5;

function workedMs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;
  } catch {
    // Not Linux: all threads of the process are counted.
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}

/** Stolen time of all processors; the kernel counts it in ticks of 10 ms. */
function stolenMs() {
  try {
    const [processors = ""] = readFileSync("/proc/stat", "utf8").split("\n", 1);
    return Number(processors.split(/ +/)[8] ?? 0) * 10;
  } catch {
    return 0;
  }
}

function slowedBy() {
  const now = measurePace(15) / Number(quiet);
  return Math.min(MOST_SLOWED, Math.max(1, now || 1));
}

if (file) {
  const look = () => ({ at: performance.now(), worked: workedMs(), stolen: stolenMs() });
  let last = look();
  setInterval(() => {
    const now = look();
    const own = Math.min(now.at - last.at, now.worked - last.worked) - (now.stolen - last.stolen);
    const beganAt = Date.now() - (now.at - last.at);
    const ms = own > LIMIT_MS ? Math.round(own / slowedBy()) : 0;
    if (ms > LIMIT_MS) appendFileSync(file, `${JSON.stringify({ beganAt, ms })}\n`);
    last = look();
  }, BEAT_MS).unref();
}
