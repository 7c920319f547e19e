import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bring } from "../src/git/dependencies.ts";
import { measure } from "./run.ts";
import { judge, temporaryFolder } from "./support.ts";

const MB = 1_000_000;
const STREAMS = 3;

/** What a run and three streams of it need of 500 MB that a project has installed, beside one `cp -a` of it. */
export async function run(args: string[]): Promise<void> {
  const size = Number(args[0] ?? 500);
  const { path, remove } = temporaryFolder();
  try {
    const checkout = join(path, "checkout");
    makeInstalled(join(checkout, "node_modules"), size);
    const copied = await timed(() => execFileSync("cp", ["-a", checkout, join(path, "copy")]));
    const one = diskOf(join(path, "copy"));
    const trees = ["run", ...Array.from({ length: STREAMS }, (_, index) => `stream-${index + 1}`)].map((name) =>
      join(path, "trees", name),
    );
    for (const tree of trees) mkdirSync(tree, { recursive: true });
    const [first, ...streams] = trees as [string, ...string[]];
    const common = { names: ["node_modules"], scratch: join(path, "scratch"), signal: new AbortController().signal };
    const own = await timed(() => bring({ from: checkout, to: first, share: false, ...common }));
    const shared = await timed(async () => {
      for (const to of streams) await bring({ from: first, to, share: true, ...common });
    });
    const used = diskOf(join(path, "trees"));
    const { beforeFirstMs } = await measure(STREAMS, 100, undefined, (project) => {
      writeFileSync(join(project, ".git", "info", "exclude"), "node_modules/\n");
      execFileSync("cp", ["-a", join(checkout, "node_modules"), project]);
    });
    console.log(
      `${size} MB: cp -a ${copied.toFixed(0)} ms; the run's own tree ${own.toFixed(0)} ms, ${STREAMS} streams ${shared.toFixed(0)} ms more`,
    );
    console.log(
      `a whole run with ${STREAMS} streams asks its first model after ${beforeFirstMs.toFixed(0)} ms; it copies meanwhile`,
    );
    judge("time before the first model call, times one cp -a", beforeFirstMs / copied, 1.2);
    judge("disk for all, times one cp -a", used / one, 1.2);
  } finally {
    remove();
  }
}

/** As package managers leave it: some large files, and many small ones in many folders. */
function makeInstalled(folder: string, size: number): void {
  const large = Buffer.alloc(5 * MB, "x");
  for (let at = 0; at < (size * 0.8) / 5; at += 1) put(join(folder, `large-${at}`), "bundle.js", large);
  const small = Buffer.alloc(10_000, "y");
  for (let at = 0; at < (size * 0.2 * MB) / small.length; at += 1)
    put(join(folder, `p${Math.floor(at / 20)}`, "lib"), `f${at}.js`, small);
}

function put(folder: string, name: string, bytes: Buffer): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), bytes);
}

/** In bytes; what several folders share counts once. */
function diskOf(folder: string): number {
  return Number(execFileSync("du", ["-s", "--block-size=1", folder], { encoding: "utf8" }).split("\t", 1)[0]);
}

async function timed(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
