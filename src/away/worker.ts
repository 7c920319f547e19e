import { resolve } from "node:path";
import type { Job, JobValue, Life, Worker } from "../dispatch/port.ts";
import type { Engine } from "../engine/port.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import { projectEnvironment } from "../process/environment.ts";
import { exec } from "../process/exec.ts";
import type { Wrap } from "../process/sandbox.ts";
import { noUsage } from "../protocol/usage.ts";
import type { Gate } from "../tools/gate.ts";
import type { Tool } from "../tools/tool.ts";
import { createHostTools } from "./host-tools.ts";
import type { JobPlace, Projects } from "./projects.ts";
import { ANSWERS, type CheckEnd, ChecksSpec, leftName, TurnSpec } from "./words.ts";

export interface AwayWorkerDeps {
  engine: Engine;
  gate: Gate;
  /** What can be done on this host. */
  tools: readonly Tool[];
  projects: Projects;
  wrap: Wrap;
  env: NodeJS.ProcessEnv;
  redactor: Redactor;
  log: Log;
}

const LOST_BEFORE =
  "\n\nAn earlier attempt at this was lost on another host. What it did to the files is gone with it; what it did elsewhere may have happened.";
/** For how large a window a session that is begun anew is told what was said before. */
const HANDOVER_WINDOW = 32_000;
const TAIL = 16_000;

/** Does turns and checks on a host that has nothing of the project but what comes with the job. */
export function createAwayWorker({ engine, gate, tools, projects, wrap, env, redactor, log }: AwayWorkerDeps): Worker {
  async function turn(spec: TurnSpec, place: JobPlace, life: Life): Promise<JobValue> {
    const { place: at, session: id, lasting } = spec;
    const handover = ANSWERS.handover.parse(await life.ask({ kind: "handover", window: HANDOVER_WINDOW }));
    const session = engine.session({
      id,
      ...(spec.model !== null && { model: spec.model }),
      ...(spec.essential && { essential: spec.essential }),
      systemMessage: async (window) => ANSWERS.system.parse(await life.ask({ kind: "system", window })),
      tools: createHostTools({ gate, tools, sent: spec.tools, owner: spec.owner, place, life }),
      workingDirectory: place.cwd,
      handover: () => handover,
    });
    try {
      const result = await session.run({
        owner: spec.owner,
        prompt: `${spec.prompt}${life.earlier.length > 0 ? LOST_BEFORE : ""}${place.note}`,
        attempt: life.attempt.attempt,
        signal: life.signal,
        silenceMs: spec.silenceMs,
        capMs: spec.capMs,
        onEvent: (event) => {
          if (event.kind === "usage") void life.record({ kind: "usage", data: event.call }).catch(() => undefined);
          else life.tell({ kind: "delta", data: event });
        },
        ...(spec.limited && {
          beforeCall: async () => ANSWERS.permit.parse(await life.ask({ kind: "permit" })).refusal ?? undefined,
        }),
      });
      life.signal.throwIfAborted();
      const value = { ...result, text: place.names.text(result.text) };
      return { value, usage: result.usage, ...(at.access === "write" ? await left(place, life) : NOTHING) };
    } finally {
      if (!lasting) await engine.deleteSession(id).catch(() => undefined);
    }
  }

  async function checks({ checks: all, deadlineMs }: ChecksSpec, place: JobPlace, life: Life): Promise<JobValue> {
    const ends: CheckEnd[] = [];
    for (const { command, cwd } of all) {
      const folder = resolve(place.cwd, cwd);
      const [program, ...args] = await wrap(["/bin/sh", "-c", command], folder, place.stand);
      const theirs = projectEnvironment(env, redactor);
      const ran = await exec(program, args, {
        ...{ cwd: folder, env: { ...theirs, CI: theirs.CI ?? "true" }, deadlineMs, signal: life.signal, maxOutput: TAIL },
      });
      life.signal.throwIfAborted();
      const { code: exitCode, ending, sha256, bytes, durationMs } = ran;
      ends.push({ exitCode, ending, output: place.names.text(redactor.clean(ran.output)), sha256, bytes, durationMs });
    }
    return { value: ends, usage: noUsage(), ...(await left(place, life)) };
  }

  /** What is in the place now, on its way to the daemon. */
  async function left(place: JobPlace, { attempt, blobs }: Life): Promise<Pick<JobValue, "tree" | "commit" | "bundle">> {
    const { tree, commit, bundle } = await place.save("What a worker left\n");
    return { tree, commit, ...(bundle && { bundle: await blobs.put(leftName(attempt.lease), bundle) }) };
  }

  return {
    async run(job: Job, life: Life) {
      const kind = job.kind === "turn" ? TurnSpec.parse(job.spec) : ChecksSpec.parse(job.spec);
      const place = await projects.open(kind.place, job.id, life);
      try {
        return await ("prompt" in kind ? turn(kind, place, life) : checks(kind, place, life));
      } finally {
        await place.close();
        log.debug("a job's files were taken away", { job: job.id });
      }
    },
  };
}

const NOTHING = { tree: null, commit: null };
