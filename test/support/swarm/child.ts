import { appendFileSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createEngine } from "../../../src/engine/engine.ts";
import { Config } from "../../../src/home/config.ts";
import { createRedactor } from "../../../src/lib/redact.ts";
import { openStore, type Store } from "../../../src/store/open.ts";
import { readRunSettings } from "../../../src/swarm/pipeline/settings.ts";
import { createSwarm } from "../../../src/swarm/run/swarm.ts";
import { walledGit } from "../git.ts";
import { bindTools } from "./bind.ts";
import { quietLog } from "./quiet.ts";

/** A swarm in its own process, which kills itself without warning when told to. */
const { home, project, modelUrl, resume, killAt, killOn, killKey, killBefore, killAfter, onDisk, issue } = JSON.parse(
  process.argv[2]!,
) as {
  home: string;
  project: string;
  modelUrl: string;
  issue: string;
  resume?: string;
  /** Which step event kills the process, counted from 1. */
  killAt?: number;
  killOn?: "step.started" | "step.finished";
  /** If set, only this step's events are counted. */
  killKey?: string;
  /**
   * Kills the process when a step's work is done but its result is not yet written. This file lists the keys that had their
   * turn.
   */
  killBefore?: string;
  /** Kills it after the result is written and announced, also once per key. */
  killAfter?: string;
  /**
   * If set, keeps a copy of the database as a power cut may leave it: without anything written since it last waited for the
   * disk.
   */
  onDisk?: string;
};

const opened = openStore(join(home, "io.db"));
const store = onDisk === undefined ? opened : copyingStore(opened, onDisk);
const config = Config.parse({});
const engine = await createEngine({
  folder: join(home, "sessions"),
  config: () => config,
  env: { ...process.env, HOME: home },
  choice: {
    kind: "provider",
    why: "the test's model",
    model: "scripted",
    named: true,
    names: { address: "the test", key: "the test", model: "the test" },
    provider: { type: "openai", baseUrl: modelUrl, wireApi: "completions" },
  },
  rehearsal: () => ({ say: "never asked" }),
  log: quietLog,
});
let steps = 0;
const swarm = createSwarm({
  store: killBefore === undefined ? store : dyingStore(store, killBefore),
  engine,
  emit: (news) => {
    if (killAfter !== undefined && news.type === "step.finished") dieOnce(killAfter, news.data.key);
    if (news.type !== killOn || (killKey !== undefined && news.data.key !== killKey)) return;
    steps += 1;
    if (steps === killAt) process.kill(process.pid, "SIGKILL");
  },
  bind: bindTools(store, home),
  ...walledGit(home, { PATH: process.env.PATH, HOME: home }),
  redactor: createRedactor(),
  findChecks: async () => [{ name: "test", command: "test -f README.md", cwd: "." }],
  runsFolder: join(home, "runs"),
  log: quietLog,
  env: { PATH: process.env.PATH, HOME: home },
});
await engine.start();
const handle = await (resume
  ? swarm.resume(resume)
  : swarm.start({ projectPath: project, issue, settings: readRunSettings({}) }));
const run = await handle.finished;
await swarm.close();
await engine.stop();
store.close();
process.stdout.write(
  JSON.stringify({ id: run.id, status: run.status, outcome: run.outcome, reason: run.reason, tree: run.tree, steps }),
);

/** Kills the process, unless this step has already done so. */
function dieOnce(file: string, key: string): void {
  if (readFileSync(file, "utf8").split("\n").includes(key)) return;
  appendFileSync(file, `${key}\n`);
  process.kill(process.pid, "SIGKILL");
}

/** A store that kills the process when a step's result is about to be written for the first time. */
function dyingStore(inner: Store, file: string): Store {
  const watched = (statement: ReturnType<Store["db"]["prepare"]>) =>
    withOwn(statement, {
      run: (...values: Parameters<typeof statement.run>) => {
        const key = String(values.at(-1));
        if (!/^(?:loop|phase|stream|note|run\/decisions)/.test(key)) dieOnce(file, key);
        return statement.run(...values);
      },
    });
  const prepare = (sql: string) => {
    const statement = inner.db.prepare(sql);
    return sql.startsWith("UPDATE run_steps SET state") ? watched(statement) : statement;
  };
  return { ...inner, db: withOwn(inner.db, { prepare }) };
}

/** A store that copies itself each time it has waited for the disk. */
function copyingStore(inner: Store, file: string): Store {
  let isSoft = false;
  const copied = <T>(result: T): T => {
    if (isSoft || inner.db.isTransaction) return result;
    rmSync(`${file}.new`, { force: true });
    inner.db.exec(`VACUUM INTO '${file}.new'`);
    renameSync(`${file}.new`, file);
    return result;
  };
  const prepare = (sql: string) => {
    const statement = inner.db.prepare(sql);
    const run = (...values: Parameters<typeof statement.run>) => copied(statement.run(...values));
    return /^\s*(?:INSERT|UPDATE|DELETE)/.test(sql) ? withOwn(statement, { run }) : statement;
  };
  return {
    ...inner,
    db: withOwn(inner.db, { prepare }),
    transaction: (work) => copied(inner.transaction(work)),
    soon: (work) => copied(inner.soon(work)),
    soft(work) {
      const before = isSoft;
      isSoft = true;
      try {
        return inner.soft(work);
      } finally {
        isSoft = before;
      }
    },
  };
}

/** The same object with some methods replaced. */
function withOwn<T extends object>(target: T, own: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const value = Reflect.get(name in own ? own : target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
