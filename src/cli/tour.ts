import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { ExitCode, UserError, usageError } from "../lib/errors.ts";
import { howToType, quotedForShell } from "../lib/invocation.ts";
import { realOf } from "../lib/real-path.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { withoutEnd } from "../lib/trim.ts";
import { endDaemon, startInBackground } from "./daemon.ts";
import { openAnswers } from "./input.ts";
import { createShell, JSON_OPTION, type Shell } from "./output.ts";
import type { Scene } from "./tour-scenes.ts";

interface TourOptions {
  folder?: string;
  keep?: boolean;
  json?: boolean;
}

/** How long the daemon has for a clean stop: Ctrl-C must end the tour within 5 s. */
const END_MS = 2_000;

/** `io tour`: shows everything once, with a sample project and the rehearsal model, in its own home. */
export function tourCommand(program: Command, shell: Shell): void {
  program
    .command("tour")
    .description("see everything once in two minutes, on a sample project; needs no account and touches nothing of yours")
    .option("--folder <path>", "where the sample is made: a folder that is empty or not there (kept afterwards)")
    .option("--keep", "keep the sample to look around in it")
    .option(...JSON_OPTION)
    .action((options: TourOptions) => tour(shell, options));
}

async function tour(shell: Shell, { folder, keep = folder !== undefined, json }: TourOptions): Promise<void> {
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  // Handled until the cleanup is complete: another Ctrl-C must not leave half of it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupt);
  const place = placeFor(folder);
  const project = join(place, "greeter");
  const own = createShell(environmentOf(shell.env, join(place, "home")));
  const show = (text: string) => (json ? shell.note(text) : void process.stdout.write(`${terminalSafe(shell.typed(text))}\n`));
  const answers = shell.isTerminal && !json ? openAnswers(true, { onInterrupt: interrupt }) : undefined;
  const prepare = async () => {
    show(`A tour of IO, on the rehearsal model: it only plays, but everything else is real.\nThe sample project: ${project}\n`);
    const { makeSampleProject } = await import("../daemon/sample.ts");
    await makeSampleProject(project, own.env);
    await startInBackground(own, { signal: stop.signal });
  };
  const preparing = prepare();
  const play = async () => {
    await preparing;
    return playAll(own, project, {
      show: (text) => void (stop.signal.aborted || show(text)),
      next: answers && (async () => void (await answers.next("Enter goes on, Ctrl-C leaves. "))),
    });
  };
  try {
    const scenes = await Promise.race([play(), interrupted(stop.signal)]);
    const document = { place, home: own.paths.home, project, kept: keep, scenes };
    const branch = /on the branch (\S+)\.$/.exec(scenes.at(-1)?.proof ?? "")?.[1];
    shell.print(document, shell.typed(ending(shell, { place, project, branch, keep })), { json });
  } finally {
    answers?.close();
    // The preparation must not start anything in a folder that is deleted meanwhile.
    await preparing.catch(() => undefined);
    await endDaemon(own, END_MS);
    if (!keep) rmSync(place, { recursive: true, force: true, maxRetries: 5 });
    // An interrupted scene may still wait for a daemon that will not come back.
    if (stop.signal.aborted) process.exit(ExitCode.interrupted);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.off(signal, interrupt);
  }
}

function interrupted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = () => reject(new UserError("Interrupted.", { exitCode: ExitCode.interrupted }));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

interface Showing {
  show: (text: string) => void;
  /** Waits for the person, if there is one. */
  next: (() => Promise<void>) | undefined;
}

async function playAll(own: Shell, project: string, { show, next }: Showing): Promise<Scene[]> {
  const { scenesOf } = await import("./tour-scenes.ts");
  const plans = scenesOf({
    client: own.client(),
    project,
    skillsFolder: own.paths.skills,
    onSay: (said) => show(`› ${said}`),
    onReply: (reply) => show(`${withoutEnd(reply.replace(/— rehearsal model$/, ""), "\n").replaceAll(/^/gm, "  ")}\n`),
    onWait: (what) => show(`  … ${what}`),
  });
  const scenes: Scene[] = [];
  for (const [index, plan] of plans.entries()) {
    if (index > 0) await next?.();
    show(`${index + 1} of ${plans.length}  ${plan.title}\n`);
    const scene = await plan.play();
    show(`✓ ${scene.proof}\n`);
    scenes.push(scene);
  }
  return scenes;
}

/** A folder for the tour; existing files are never touched. */
function placeFor(folder: string | undefined): string {
  if (folder === undefined) return realOf(mkdtempSync(join(tmpdir(), "io-tour-")));
  const place = resolve(folder);
  if (existsSync(place) && readdirSync(place).length > 0)
    throw usageError(`${place}: is not empty. The tour wants a folder of its own.`);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  return realOf(place);
}

/** The person's environment without variables that would select another home, model or port. */
function environmentOf(env: NodeJS.ProcessEnv, home: string): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^IO_(?:HOST|PORT|TOKEN|ENGINE|HOME)$/.test(name));
  return { ...Object.fromEntries(kept), IO_HOME: home, IO_ENGINE: "rehearsal", IO_PORT: "0" };
}

function ending(
  shell: Shell,
  { place, project, branch, keep }: { place: string; project: string; branch: string | undefined; keep: boolean },
): string {
  const look = branch
    ? [
        `  git -C ${quotedForShell(project)} diff main...${branch}   what the pipeline made`,
        `  rm -r ${quotedForShell(place)}   when you have seen enough`,
      ]
    : [];
  const type = howToType({ env: shell.env, cwd: process.cwd() });
  return [
    "That was all of it. What comes next:",
    "  io setup   connect a real model",
    `  ${shell.invocation().io}   talk to IO, in the folder of a project`,
    ...(keep ? ["The sample stays:", ...look] : ["The sample is gone; io tour --keep leaves it for you to look around."]),
    ...(type ? [type] : []),
  ].join("\n");
}
