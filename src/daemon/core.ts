import { createEngine } from "../engine/engine.ts";
import { type Choice, chooseEngine } from "../engine/models/ladder.ts";
import type { Model } from "../engine/rehearsal/wire.ts";
import { namedRuntime } from "../engine/runtime/path.ts";
import { sessionNames } from "../engine/sessions/recover.ts";
import { createGit, type Git } from "../git/command.ts";
import { readUserSettings } from "../git/user-settings.ts";
import type { LiveConfig } from "../home/live-config.ts";
import { squadProtection, stricterMode } from "../home/modes.ts";
import type { Paths } from "../home/paths.ts";
import { createLog } from "../lib/log.ts";
import { packageRoot } from "../lib/package-root.ts";
import { createRedactor, type Redactor } from "../lib/redact.ts";
import { projectEnvironment } from "../process/environment.ts";
import { findPrograms } from "../process/programs.ts";
import { createSandbox, WORKSPACE_REMEDY, type Wrap } from "../process/sandbox.ts";
import { createShells, type Shells } from "../process/shells.ts";
import type { Event } from "../protocol/events.ts";
import { createAttachments } from "../store/attachments.ts";
import { createEventLog } from "../store/events.ts";
import { createHub } from "../store/hub.ts";
import { openStore } from "../store/open.ts";
import { createRetention } from "../store/retention.ts";
import { openRuns } from "../store/runs.ts";
import { createSentFiles } from "../store/sent-files.ts";
import { createSquadStore } from "../store/squads.ts";
import { createState } from "../store/state.ts";
import { createTodos } from "../store/todos.ts";
import { createUsageLog } from "../store/usage.ts";
import { chosenBy } from "../swarm/checks/chosen-checks.ts";
import { findChecksWith } from "../swarm/checks/planned-checks.ts";
import type { SwarmDeps } from "../swarm/run/deps.ts";
import { createSwarm, type Swarm } from "../swarm/run/swarm.ts";
import { deleteOldRefs } from "../swarm/workspace/old-refs.ts";
import { type Approvals, createApprovals } from "../tools/approvals/approvals.ts";
import { createApprover } from "../tools/approvals/approver.ts";
import { createBudgets } from "../tools/budgets/budgets.ts";
import { fileOps } from "../tools/file-ops.ts";
import { createGate } from "../tools/gate.ts";
import { createPathGuard } from "../tools/guard.ts";
import { createPolicy } from "../tools/policy.ts";
import { backgroundTools, shell } from "../tools/shell.ts";
import { todo } from "../tools/todo.ts";
import { readingTools } from "../tools/tool.ts";
import { createUndo, type Undo } from "../undo/undo.ts";
import { openBackground, stopCommands } from "./background.ts";
import type { Closers } from "./closers.ts";
import { watchDisk } from "./disk-watch.ts";
import { secretsOf } from "./secrets.ts";

export interface CoreDeps {
  env: NodeJS.ProcessEnv;
  paths: Paths;
  settings: LiveConfig;
  token: string | undefined;
  closers: Closers;
  /** Receives each line of the log. */
  echo?: (line: string) => void;
}

/** What the daemon and a worker share: the store, the events, the engine, the gate and the tools of the machine. */
export async function createCore({ env, paths, settings, token, closers, echo }: CoreDeps) {
  const config = settings.current();
  const redactor = createRedactor(secretsOf(config, env, token));
  const log = createLog({ folder: paths.logs, level: () => settings.current().logLevel, redactor, ...(echo && { echo }) });
  const store = openStore(paths.database, { log, onFull: () => disk.refused() });
  closers.add(store.close);
  const events = createEventLog(store);
  const hub = createHub({ events, log });
  closers.add(hub.close);
  const disk = watchDisk({ folder: paths.home, onChange: (data) => hub.announce({ type: "disk.changed", data }) });
  closers.add(disk.close);
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
    // Node loads compiled code from there without checking it.
    programs: [...namedRuntime(env), ...(env.NODE_COMPILE_CACHE ? [env.NODE_COMPILE_CACHE] : [])],
    selfEdit: () => settings.current().selfEditEnabled,
  });
  const programs = findPrograms({ env, closed: [paths.home] });
  const sandbox = createSandbox({ home: paths.home, guard, settings: settings.current, env, programs });
  void sandbox.status().then(({ kind, detail }) => {
    if (kind === "open" && sandbox.height() === "workspace")
      log.error("every command is refused: a workspace is not possible here", { detail, remedy: WORKSPACE_REMEDY });
  });
  const shells = createShells(sandbox.wrap);
  closers.add(shells.close);
  const git = openGit({ env, home: paths.home, programs, wrap: sandbox.wrap, shells, redactor });
  const undo = createUndo({ store, git, folder: paths.undo, home: paths.home, log });
  closers.add(undo.close);
  closers.add(hub.subscribe(settleEnded(undo)));
  const attachments = createAttachments({ store, folder: paths.files });
  const sentFiles = createSentFiles({ store, folder: paths.files });
  const retention = createRetention({
    store,
    limits: () => settings.current().retention,
    sessions: {
      isReady: () => engine.status().state === "ready",
      names: () => sessionNames(paths.sessions),
      delete: (id) => engine.deleteSession(id),
    },
    deleteOldRefs: async (before) => (await deleteOldRefs(git, openRuns(store), before)) + (await undo.removeOld(before)),
    removeUntoldFiles: () => sentFiles.removeUntold() + attachments.removeUntold(),
    log,
  });
  retention.start();
  closers.add(retention.stop);
  const approvals = createApprovals({
    ...{ store, log, emit: hub.emit, clean: redactor.mark },
    expiresMs: () => settings.current().approvalExpiresMs,
  });
  closers.add(approvals.letGo);
  closers.add(hub.subscribe(withdrawEnded(approvals)));
  const squadRows = createSquadStore(store);
  const budgets = createBudgets({
    ...{ store, usage, approvals, config: settings.current, emit: hub.emit, log },
    squadBudgets: (slug) => squadRows.find(slug)?.safety.budgets,
  });
  const approver = createApprover({ approvals, guard, sandbox, config: settings.current, mark: redactor.mark, log });
  const policy = createPolicy({ guard, keep: [paths.home] });
  const gate = createGate({ store, redactor, log, policy, approver, beforeEffect: undo.before, folder: paths.home });
  const todos = createTodos(store);
  const background = openBackground({ store, usage, sandbox, emit: hub.emit, redactor, home: paths.home });
  closers.add(background.commands.stopAll);
  closers.add(hub.subscribe(stopCommands(background)));
  const machine = {
    shell: shell({ sandbox, redactor, readable: [paths.files], env, background }),
    background: backgroundTools({ background }),
    todo: todo({ todos, conversationOf: background.conversationOf, emit: hub.emit, clean: redactor.clean }),
    files: fileOps({ guard, write: true }),
    filesToRead: fileOps({ guard, write: false }),
  };
  return {
    redactor,
    log,
    store,
    events,
    hub,
    disk,
    usage,
    retention,
    attachments,
    choice,
    engine,
    approvals,
    budgets,
    gate,
    guard,
    sandbox,
    programs,
    git,
    undo,
    machine,
    todos,
    background: background.commands,
    backgroundView: background.view,
    /** The global mode. */
    mode: () => settings.current().mode,
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

/** The only git, for the daemon and for commands that need no engine. */
export function openGit({ env, home, programs, redactor, ...walls }: OpenGitDeps): Git {
  return createGit({
    program: () => programs.find("git"),
    ...walls,
    environment: () => projectEnvironment(env, redactor),
    user: readUserSettings({ program: programs.find("git"), env }),
    home,
  });
}

/** Drops the undo index of an ended message or task, which changes nothing more. */
function settleEnded({ settle }: Pick<Undo, "settle">): (event: Event) => void {
  return ({ type, data }) => {
    if (type === "message.finished" || type === "task.finished") settle(data.id);
  };
}

/** Withdraws the open approvals of whatever has ended. */
function withdrawEnded({ withdraw }: Pick<Approvals, "withdraw">): (event: Event) => void {
  return (event) => {
    if (event.type === "message.finished" || event.type === "task.finished") withdraw(event.data.id);
    else if (event.type === "run.finished") withdraw(event.data.runId);
  };
}

export interface SwarmParts extends Pick<SwarmDeps, "onSay" | "remoteWork" | "rulesFor"> {
  /** The channel that a run came from, for the usage record. */
  sourceOf: (runId: string) => string;
}

/** Builds the pipeline room on top of a core. */
export function createSwarmOn(
  { store, engine, hub, gate, machine, sandbox, git, redactor, log, budgets, mode }: Core,
  paths: Paths,
  env: NodeJS.ProcessEnv,
  { onSay, sourceOf, remoteWork, rulesFor }: SwarmParts,
): Swarm {
  const tools = {
    shell: [machine.shell, ...machine.background],
    file_ops: [machine.files],
    file_ops_read: [machine.filesToRead],
  };
  const squads = createSquadStore(store);
  return createSwarm({
    store,
    engine,
    emit: hub.emit,
    bind: (names, scope) => {
      const all = names.flatMap((name) => tools[name]);
      return gate.bind(stricterMode(mode(), scope.strictest) === "plan" ? readingTools(all) : all, scope);
    },
    findChecks: findChecksWith(git),
    runsFolder: paths.runs,
    installedFolder: paths.installed,
    sessionsFolder: paths.sessions,
    dataFolder: paths.home,
    git,
    wrap: sandbox.wrap,
    redactor,
    chosenChecks: (projectPath) => chosenBy(squads.findByPath(projectPath)),
    safetyOf: (projectPath) => {
      const own = squads.findByPath(projectPath)?.safety ?? {};
      return { ...own, ...squadProtection(own) };
    },
    log,
    env,
    spending: {
      record: (spender, call) => budgets.record({ ...spender, source: spender.source ?? sourceOf(spender.owner) }, call),
      permit: budgets.permit,
    },
    ...(onSay && { onSay }),
    ...(remoteWork && { remoteWork }),
    ...(rulesFor && { rulesFor }),
  });
}

/** Loads the rehearsal model and its rules only if they are used. */
async function rehearsalFor({ kind }: Choice, home: string): Promise<Model> {
  if (kind !== "rehearsal") return () => ({ status: 503, message: "The rehearsal model does not play here." });
  const { createImproviser } = await import("../engine/rehearsal/improvise.ts");
  const { loadRules } = await import("../engine/rehearsal/rules.ts");
  return createImproviser(loadRules(home));
}
