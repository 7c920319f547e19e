import { createEngine } from "../engine/engine.ts";
import { type Choice, chooseEngine } from "../engine/ladder.ts";
import { sessionNames } from "../engine/recover.ts";
import type { Model } from "../engine/rehearsal/wire.ts";
import { runtimeCache } from "../engine/runtime-path.ts";
import { createGit, type Git } from "../git/command.ts";
import { readUserSettings } from "../git/user-settings.ts";
import { readToken } from "../lib/api-token.ts";
import { loadConfig } from "../lib/config.ts";
import { createLiveConfig, type LiveConfig } from "../lib/live-config.ts";
import { createLog } from "../lib/log.ts";
import { ensureHome, type Paths, packageRoot, pathsOf } from "../lib/paths.ts";
import { createRedactor, type Redactor } from "../lib/redact.ts";
import { projectEnvironment } from "../process/environment.ts";
import { findPrograms } from "../process/programs.ts";
import { createSandbox, WORKSPACE_REMEDY, type Wrap } from "../process/sandbox.ts";
import { createShells, type Shells } from "../process/shells.ts";
import { surveyProject } from "../project/analyze.ts";
import { findChecks } from "../project/commands.ts";
import type { Event } from "../protocol/events.ts";
import type { Said } from "../protocol/runs.ts";
import { createEventLog } from "../store/events.ts";
import { createHub } from "../store/hub.ts";
import { openStore } from "../store/open.ts";
import { createRetention } from "../store/retention.ts";
import { openRuns } from "../store/runs.ts";
import { createSentFiles } from "../store/sent-files.ts";
import { createSquadStore } from "../store/squads.ts";
import { createState } from "../store/state.ts";
import { createUsageLog } from "../store/usage.ts";
import type { SwarmDeps } from "../swarm/run/deps.ts";
import { deleteOldRefs } from "../swarm/run/old-refs.ts";
import { createSwarm, type Swarm } from "../swarm/run/swarm.ts";
import { type Approvals, createApprovals } from "../tools/approvals/approvals.ts";
import { createApprover } from "../tools/approvals/approver.ts";
import { createBudgets } from "../tools/budgets/budgets.ts";
import { fileOps } from "../tools/file-ops.ts";
import { createGate } from "../tools/gate.ts";
import { createPathGuard } from "../tools/guard.ts";
import { createPolicy } from "../tools/policy.ts";
import { shell } from "../tools/shell.ts";
import { type Closers, withClosers } from "./closers.ts";
import { secretsOf } from "./secrets.ts";

export interface CoreDeps {
  env: NodeJS.ProcessEnv;
  paths: Paths;
  settings: LiveConfig;
  token: string | undefined;
  closers: Closers;
  /** Told each line of the log, for somebody who watches. */
  echo?: (line: string) => void;
}

/** What the daemon and `swarm` share: the store, the events, the engine, the gate and the tools of the machine. */
export async function createCore({ env, paths, settings, token, closers, echo }: CoreDeps) {
  const config = settings.current();
  const redactor = createRedactor(secretsOf(config, env, token));
  const log = createLog({ folder: paths.logs, level: () => settings.current().logLevel, redactor, ...(echo && { echo }) });
  const store = openStore(paths.database);
  closers.add(store.close);
  const events = createEventLog(store);
  const hub = createHub({ events, log });
  closers.add(hub.close);
  const usage = createUsageLog(store);
  const choice = await chooseEngine(config, env);
  redactor.hide(choice.login?.token);
  const engine = await createEngine({
    folder: paths.sessions,
    config: settings.current,
    env,
    choice,
    rehearsal: await rehearsalFor(choice, paths.home),
    log,
    clean: redactor.clean,
    memo: createState(store),
    onState: (state) => hub.emit({ type: "engine.changed", data: { kind: choice.kind, state } }),
  });
  closers.add(engine.stop);
  const guard = createPathGuard({
    paths,
    packageRoot,
    programs: [runtimeCache(env)],
    selfEdit: () => settings.current().selfEditEnabled,
  });
  const programs = findPrograms({ env, closed: [paths.home] });
  const sandbox = createSandbox({ home: paths.home, guard, settings: settings.current, env, programs });
  void sandbox.status().then(({ kind, detail }) => {
    if (kind === "open" && settings.current().sandbox === "workspace")
      log.error("every command is refused: a workspace is not possible here", { detail, remedy: WORKSPACE_REMEDY });
  });
  const shells = createShells(sandbox.wrap);
  closers.add(shells.close);
  const git = openGit({ env, home: paths.home, programs, wrap: sandbox.wrap, shells, redactor });
  const retention = createRetention({
    store,
    limits: () => settings.current().retention,
    sessions: {
      isReady: () => engine.status().state === "ready",
      names: () => sessionNames(paths.sessions),
      delete: (id) => engine.deleteSession(id),
    },
    deleteOldRefs: (before) => deleteOldRefs(git, openRuns(store), before),
    removeUntoldFiles: createSentFiles({ store, folder: paths.files }).removeUntold,
    log,
  });
  retention.start();
  closers.add(retention.stop);
  const approvals = createApprovals({
    ...{ store, log, emit: hub.emit, clean: redactor.clean },
    expiresMs: () => settings.current().approvalExpiresMs,
  });
  closers.add(approvals.letGo);
  closers.add(hub.subscribe(withdrawEnded(approvals)));
  const squadRows = createSquadStore(store);
  const budgets = createBudgets({
    ...{ store, usage, approvals, config: settings.current, emit: hub.emit, log },
    squadBudgets: (slug) => squadRows.find(slug)?.safety.budgets,
  });
  const approver = createApprover({ approvals, guard, config: settings.current, clean: redactor.clean, log });
  const gate = createGate({ store, redactor, log, policy: createPolicy({ guard, keep: [paths.home] }), approver });
  const machine = {
    shell: shell({ sandbox, redactor, readable: [paths.files], env }),
    files: fileOps({ guard, write: true }),
    filesToRead: fileOps({ guard, write: false }),
  };
  return {
    redactor,
    log,
    store,
    events,
    hub,
    usage,
    retention,
    choice,
    engine,
    approvals,
    budgets,
    gate,
    guard,
    sandbox,
    programs,
    git,
    machine,
  };
}
export type Core = Awaited<ReturnType<typeof createCore>>;

export interface OpenGitDeps {
  env: NodeJS.ProcessEnv;
  home: string;
  programs: ReturnType<typeof findPrograms>;
  wrap: Wrap;
  shells?: Shells;
  redactor: Redactor;
}

/** The one git, for the daemon and for commands that need no engine. */
export function openGit({ env, home, programs, redactor, ...walls }: OpenGitDeps): Git {
  return createGit({
    program: () => programs.find("git"),
    ...walls,
    environment: () => projectEnvironment(env, redactor),
    user: readUserSettings({ program: programs.find("git"), env }),
    home,
  });
}

/** What has ended needs no answers any more. */
function withdrawEnded({ withdraw }: Pick<Approvals, "withdraw">): (event: Event) => void {
  return (event) => {
    if (event.type === "message.finished" || event.type === "task.finished") withdraw(event.data.id);
    else if (event.type === "run.finished") withdraw(event.data.runId);
  };
}

/** The pipeline's room on top of a core. */
export function createSwarmOn(
  { store, engine, hub, gate, machine, sandbox, git, redactor, log, budgets }: Core,
  paths: Paths,
  env: NodeJS.ProcessEnv,
  {
    onSay,
    sourceOf = () => "cli",
    away,
  }: { onSay?: (said: Said) => void; sourceOf?: (runId: string) => string; away?: SwarmDeps["away"] } = {},
): Swarm {
  const tools = { shell: machine.shell, file_ops: machine.files, file_ops_read: machine.filesToRead };
  const squads = createSquadStore(store);
  return createSwarm({
    store,
    engine,
    emit: hub.emit,
    bind: (names, scope) =>
      gate.bind(
        names.map((name) => tools[name]),
        scope,
      ),
    findChecks: async (folder) => findChecks((await surveyProject(git, folder)).facts),
    runsFolder: paths.runs,
    dataFolder: paths.home,
    git,
    wrap: sandbox.wrap,
    redactor,
    heldIn: (projectPath) => squads.findByPath(projectPath)?.safety ?? {},
    log,
    env,
    spending: {
      record: (spender, call) => budgets.record({ ...spender, source: sourceOf(spender.owner) }, call),
      permit: budgets.permit,
    },
    ...(onSay && { onSay }),
    ...(away && { away }),
  });
}

/** The pipeline in a process of its own. */
export function openSwarm({ env, onSay }: { env: NodeJS.ProcessEnv; onSay?: (said: Said) => void }) {
  return withClosers(async (closers) => {
    const paths = pathsOf(env);
    const settings = createLiveConfig(paths.config);
    ensureHome(paths);
    const core = await createCore({ env, paths, settings, token: env.IO_TOKEN || readToken(paths.token), closers });
    const swarm = createSwarmOn(core, paths, env, { ...(onSay && { onSay }) });
    closers.add(swarm.close);
    // What a person changes through the daemon holds here too, such as a budget that a run waits for.
    closers.add(core.hub.subscribe(({ type }) => void (type === "config.changed" && settings.replace(loadConfig(paths.config)))));
    await core.engine.start();
    return { swarm, hub: core.hub, approvals: core.approvals, choice: core.choice, close: closers.close };
  });
}

/** The improviser and its rules are loaded only where they are to play. */
async function rehearsalFor({ kind }: Choice, home: string): Promise<Model> {
  if (kind !== "rehearsal") return () => ({ status: 503, message: "The rehearsal model does not play here." });
  const { createImproviser } = await import("../engine/rehearsal/improvise.ts");
  const { loadRules } = await import("../engine/rehearsal/rules.ts");
  return createImproviser(loadRules(home));
}
