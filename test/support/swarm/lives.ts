import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { packageRoot } from "../../../src/lib/paths.ts";
import { openStore } from "../../../src/store/open.ts";
import { openRuns } from "../../../src/store/runs.ts";
import { bundled } from "../bundled.ts";
import { temporaryFolder } from "../home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../model.ts";
import { makeProject, play, roleOf, task } from "./index.ts";

const program = bundled(join(packageRoot, "test", "support", "swarm", "child.ts"));

/** Two tasks, as the pm breaks work down. */
export const TWO_TASKS = JSON.stringify([task("T1", "First"), task("T2", "Second")]);

/** How one process that worked on a run ended. */
export interface Life {
  code: number | null;
  signal: NodeJS.Signals | null;
  said: string;
}

/** Works on a run in a process of its own, which may be told where to be killed. */
export async function live(options: object, onStart?: (child: ChildProcess) => void): Promise<Life> {
  const child = spawn(process.execPath, [await program, JSON.stringify(options)], {
    cwd: packageRoot,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onStart?.(child);
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  return new Promise((done) => child.once("close", (code, signal) => done({ code, signal, said })));
}

/** The latest run of a home, and its steps. */
export function runOf(home: string) {
  const store = openStore(join(home, "io.db"));
  const runs = openRuns(store);
  const [row] = runs.list(1);
  const steps = row ? runs.steps(row.id) : [];
  store.close();
  return { row, steps };
}

/** A project, and a model that takes two streams through every phase. */
export async function scene() {
  const home = temporaryFolder();
  const project = makeProject();
  const model = await scriptedModel(
    play(({ role, prompt, before }) => {
      if (role === "pm" && prompt.includes("Reply with a JSON array")) return { say: TWO_TASKS };
      if (role === "eng-spec-reviewer" && before === 0) return { say: "1. Say more." };
      return undefined;
    }),
  );
  return { home, project, model, base: { home, project, modelUrl: model.url, issue: "Do two things" } };
}

/** What the model was asked, one line a question, in no order. */
export const asked = (requests: Parameters<typeof roleOf>[0][]) =>
  requests
    .filter((request) => !isAfterTool(request))
    .map(
      (request) =>
        `${roleOf(request)}: ${lastUserText(request)
          .replace(/<current_datetime>.*?<\/current_datetime>/s, "")
          .replace(/\d+ ms/g, "ms")
          .trim()}`,
    );
