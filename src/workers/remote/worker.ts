import type { Engine } from "../../engine/port.ts";
import type { Log } from "../../lib/log.ts";
import type { Redactor } from "../../lib/redact.ts";
import { projectEnvironment } from "../../process/environment.ts";
import type { Wrap } from "../../process/sandbox.ts";
import { activated } from "../../project/fallbacks.ts";
import { MAX_TAIL } from "../../project/reports/read.ts";
import { runReported } from "../../project/reports/run.ts";
import { noUsage } from "../../protocol/usage.ts";
import type { Gate } from "../../tools/gate.ts";
import type { Tool } from "../../tools/tool.ts";
import type { Job, JobAttempt, JobValue, Worker } from "../jobs/port.ts";
import { createHostTools } from "./host-tools.ts";
import { ANSWERS, type CheckEnd, ChecksSpec, leftName, MAX_NOTICE, TurnSpec } from "./job-messages.ts";
import { innerFolder, type JobPlace, type Projects } from "./projects.ts";

export interface WorkerDeps {
  engine: Engine;
  gate: Gate;
  /** The tools that can run on this host. */
  tools: readonly Tool[];
  projects: Projects;
  wrap: Wrap;
  env: NodeJS.ProcessEnv;
  redactor: Redactor;
  /** Whether a person at the daemon may let a command out of this host's sandbox. */
  mayLeave: () => boolean;
  log: Log;
}

const LOST_BEFORE =
  "\n\nAn earlier attempt at this was lost on another host. What it did to the files is gone with it; what it did elsewhere may have happened.";
/** The context window, in tokens, for which the handover of a session that starts anew is written. */
const HANDOVER_WINDOW = 32_000;
const TAIL = 16_000;

/** For the model that works on this host, or the reader of a check that failed on it. */
const missingText = ({ missing }: JobPlace): string =>
  missing.length === 0 ? "" : `\n\nOn this host the following could not be installed:\n${missing.join("\n")}`;

/** Runs turns and checks on a host that has only the files that come with the job. */
export function createWorker({ engine, gate, tools, projects, wrap, env, redactor, mayLeave, log }: WorkerDeps): Worker {
  async function turn(spec: TurnSpec, place: JobPlace, jobAttempt: JobAttempt): Promise<JobValue> {
    const { place: at, session: id, lasting } = spec;
    const handover = ANSWERS.handover.parse(await jobAttempt.ask({ kind: "handover", window: HANDOVER_WINDOW }));
    const session = engine.session({
      id,
      ...(spec.model !== null && { model: spec.model }),
      ...(spec.essential && { essential: spec.essential }),
      systemMessage: async (window) => ANSWERS.system.parse(await jobAttempt.ask({ kind: "system", window })),
      tools: createHostTools({ gate, tools, sent: spec.tools, owner: spec.owner, place, jobAttempt, mayLeave }),
      workingDirectory: place.cwd,
      handover: () => handover,
    });
    for (const text of place.missing)
      jobAttempt.tell({ kind: "delta", data: { kind: "notice", text: text.slice(0, MAX_NOTICE) } });
    try {
      const result = await session.run({
        owner: spec.owner,
        prompt: `${spec.prompt}${jobAttempt.earlier.length > 0 ? LOST_BEFORE : ""}${missingText(place)}`,
        attempt: jobAttempt.attempt.attempt,
        signal: jobAttempt.signal,
        silenceMs: spec.silenceMs,
        capMs: spec.capMs,
        onEvent: (event) => {
          if (event.kind === "usage") void jobAttempt.record({ kind: "usage", data: event.call }).catch(() => undefined);
          // Nobody listens to a model's thoughts from another host.
          else if (event.kind !== "thought") jobAttempt.tell({ kind: "delta", data: event });
        },
        ...(spec.limited && {
          beforeCall: async () => ANSWERS.permit.parse(await jobAttempt.ask({ kind: "permit" })).refusal ?? undefined,
        }),
      });
      jobAttempt.signal.throwIfAborted();
      const value = { ...result, text: place.names.text(result.text) };
      return { value, usage: result.usage, ...(at.access === "write" ? await saveResult(place, jobAttempt) : NOTHING) };
    } finally {
      if (!lasting) await engine.deleteSession(id).catch(() => undefined);
    }
  }

  async function checks({ checks: all, deadlineMs }: ChecksSpec, place: JobPlace, jobAttempt: JobAttempt): Promise<JobValue> {
    const ends: CheckEnd[] = [];
    const clean = (text: string) => place.names.text(redactor.clean(text));
    for (const { command, cwd, instead } of all) {
      const folder = innerFolder(place.cwd, cwd);
      const theirs = projectEnvironment(activated(env, { top: place.cwd, cwd: folder }), redactor);
      const { result, reading } = await runReported(
        await wrap(instead ?? ["/bin/sh", "-c", command], folder, place.sandboxProfile),
        {
          ...{ cwd: folder, env: theirs, deadlineMs, signal: jobAttempt.signal, maxOutput: TAIL, clean },
        },
      );
      jobAttempt.signal.throwIfAborted();
      const { code: exitCode, ending, sha256, bytes, durationMs } = result;
      const tail = exitCode === 0 ? reading.tail : `${reading.tail}${missingText(place)}`.slice(-MAX_TAIL);
      ends.push({ exitCode, ending, output: clean(result.output), sha256, bytes, durationMs, reading: { ...reading, tail } });
    }
    return { value: ends, usage: noUsage(), ...(await saveResult(place, jobAttempt)) };
  }

  /** Saves what is in the place and sends it to the daemon. */
  async function saveResult(
    place: JobPlace,
    { attempt, blobs }: JobAttempt,
  ): Promise<Pick<JobValue, "tree" | "commit" | "bundle">> {
    const { tree, commit, bundle } = await place.save("What a worker left\n");
    return { tree, commit, ...(bundle && { bundle: await blobs.put(leftName(attempt.lease), bundle) }) };
  }

  return {
    async run(job: Job, jobAttempt: JobAttempt) {
      const kind = job.kind === "turn" ? TurnSpec.parse(job.spec) : ChecksSpec.parse(job.spec);
      const place = await projects.open(kind.place, job.id, jobAttempt);
      try {
        return await ("prompt" in kind ? turn(kind, place, jobAttempt) : checks(kind, place, jobAttempt));
      } finally {
        await place.close();
        log.debug("a job's files were taken away", { job: job.id });
      }
    },
  };
}

const NOTHING = { tree: null, commit: null };
