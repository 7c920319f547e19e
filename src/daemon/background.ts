import { createHash } from "node:crypto";
import { stripVTControlCharacters } from "node:util";
import { realOf } from "../lib/real-path.ts";
import type { Redactor } from "../lib/redact.ts";
import { type BackgroundCommand, createBackgroundCommands } from "../process/background-commands.ts";
import { endMarked } from "../process/leftover-processes.ts";
import type { Sandbox } from "../process/sandbox.ts";
import type { BackgroundOutput, BackgroundCommand as ToldCommand } from "../protocol/background.ts";
import type { Event, News } from "../protocol/events.ts";
import { createMessages } from "../store/messages.ts";
import type { Store } from "../store/open.ts";
import { conversationHolder } from "../store/todos.ts";
import type { UsageLog } from "../store/usage.ts";

export interface BackgroundDeps {
  store: Store;
  usage: UsageLog;
  sandbox: Pick<Sandbox, "status">;
  emit: (news: News) => void;
  redactor: Pick<Redactor, "clean">;
  /** The data folder. */
  home: string;
}

/**
 * Background commands: those of a message belong to its conversation, those of a task or a run's step to the task or step itself.
 */
export function openBackground({ store, usage, sandbox, emit, redactor, home }: BackgroundDeps) {
  const messages = createMessages(store, usage);
  const mark = `IO_BACKGROUND=${createHash("sha256").update(realOf(home)).digest("hex").slice(0, 24)}`;
  // Without a sandbox that ends them with the daemon, the commands of a killed daemon are still running.
  const ready = sandbox.status().then((status) => {
    if (status.kind === "open" || !status.processes) return endMarked(mark);
  });
  const conversationOf = (id: string) => messages.find(id)?.conversation;

  /** A command as shown to people, without secrets. */
  function describe({ id, command, cwd, owner, startedAt, result }: BackgroundCommand): ToldCommand {
    const kind = owner.startsWith("m_") ? "message" : owner.startsWith("t_") ? "task" : "run";
    const finished = result && new Date(startedAt.getTime() + result.durationMs).toISOString();
    return {
      ...{ id, command: redactor.clean(command), folder: cwd },
      owner: { kind, id: kind === "run" ? owner.split("/", 1)[0]! : owner },
      conversation: kind === "message" ? (conversationOf(owner) ?? null) : null,
      state: result === undefined ? "running" : (STATES[result.ending] ?? "ended"),
      exitCode: result?.code ?? null,
      startedAt: startedAt.toISOString(),
      finishedAt: finished ?? null,
    };
  }

  const commands = createBackgroundCommands({
    onChange(command) {
      const data = describe(command);
      const about = { data, ...(data.conversation !== null && { conversation: data.conversation }) };
      emit({ type: command.result === undefined ? "background.started" : "background.finished", ...about });
    },
  });

  const withLines = (command: BackgroundCommand, lines: number): BackgroundOutput => {
    const { total } = commands.read(command.id, Number.MAX_SAFE_INTEGER);
    const { lines: last } = commands.read(command.id, Math.max(1, total - lines + 1));
    const text = redactor.clean(stripVTControlCharacters(last.join("\n")));
    return { ...describe(command), lines: last.length === 0 ? [] : text.split("\n"), total };
  };
  const find = (id: string) => commands.all().find((each) => each.id === id);

  return {
    commands,
    mark,
    ready,
    conversationOf,
    holderOf: (owner: string) => (owner.startsWith("m_") ? conversationHolder(conversationOf(owner) ?? owner) : owner),
    /** For people, who see and stop the commands of every conversation, task and run. */
    view: {
      list: (lines: number) => commands.all().map((each) => withLines(each, lines)),
      find(id: string, lines: number) {
        const command = find(id);
        return command && withLines(command, lines);
      },
      async stop(id: string) {
        await commands.stop(id);
        const command = find(id);
        return command && describe(command);
      },
      /** Ends what a message left running; false if nothing was. */
      async stopOf(owner: string) {
        const isRunning = commands.all().some((each) => each.owner === owner && each.result === undefined);
        await commands.stopOf(owner);
        return isRunning;
      },
    },
  };
}
type Background = ReturnType<typeof openBackground>;
export type BackgroundView = Background["view"];

const STATES: Readonly<Record<string, ToldCommand["state"]>> = { aborted: "stopped", "not-started": "failed" };

/** Ends the commands of a cancelled message and of a deleted conversation. */
export function stopCommands({ commands }: Pick<Background, "commands">): (event: Event) => void {
  return ({ type, data }) => {
    if (type === "message.finished" && data.status === "cancelled") void commands.stopOf(data.id);
    else if (type === "conversation.deleted") void commands.forget(conversationHolder(data.name));
  };
}
