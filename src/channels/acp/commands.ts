import type { AvailableCommand } from "@agentclientprotocol/sdk";
import { UserError } from "../../lib/errors.ts";
import { oneLine, quoted } from "../../lib/quoted.ts";
import type { Status } from "../../protocol/api.ts";
import { formatApproval } from "../../protocol/approval-text.ts";
import type { Approval } from "../../protocol/approvals.ts";
import { formatRunning } from "../../protocol/shown-state.ts";
import type { Skill } from "../../protocol/skills.ts";
import type { Squad, Task } from "../../protocol/squads.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";

/** A command that a person typed in an editor, such as `/status`. */
interface Typed {
  name: string;
  rest: string;
}

interface Here {
  conversation: string;
  folder: string;
  say: (text: string) => Promise<void>;
  /** Creates the conversation and follows it, so that results can appear there. */
  prepare: () => Promise<unknown>;
}

/** The result of a command: text to show, or a prompt for the model. */
interface Done {
  say?: string;
  prompt?: string;
}

interface Command {
  description: string;
  hint?: string;
  run: (rest: string, here: Here) => Promise<Done>;
}

/** A prompt that is a command: a slash, a name, and nothing that looks like a path. */
function commandIn(text: string): Typed | undefined {
  const found = /^\/([a-z][a-z0-9-]*)(?:\s+(\S[\s\S]*))?$/.exec(text);
  return found ? { name: found[1]!, rest: (found[2] ?? "").trim() } : undefined;
}

/** The commands that editors offer. None answers a question or changes a setting. */
export function createCommands({ request }: Pick<AcpAccess, "request">) {
  const listOf = async <T>(path: string) => (await request<{ items: T[] }>("GET", path)).items;
  const skills = async () => (await listOf<Skill>("/api/skills")).filter(({ enabled }) => enabled);

  const own: Record<string, Command> = {
    squad: {
      description: "The squads and what they do",
      async run() {
        const squads = await listOf<Squad>("/api/squads");
        const lines = squads.map(({ slug, status, projectPath }) => `- ${slug}: ${status}, ${projectPath}`);
        return { say: lines.join("\n") || "There are no squads yet: ask for one." };
      },
    },
    delegate: {
      description: "Give a squad a task",
      hint: "<squad> <task>",
      async run(rest, { conversation, prepare }) {
        const [, squad, task] = /^(\S+)\s+(\S[\s\S]*)$/.exec(rest) ?? [];
        if (!squad || !task) throw new UserError("/delegate needs a squad and a task: /delegate <squad> <task>");
        await prepare();
        const made = await request<Task>("POST", `/api/squads/${segment(squad)}/tasks`, { task, conversation });
        return { say: `${made.agent} of ${made.squad} has the task (${made.id}). You are told here when it ends.` };
      },
    },
    swarm: {
      description: "Have the pipeline turn an issue into tested code on a branch",
      hint: "<issue>",
      run: async (rest, { folder }) => ({
        prompt: needed("swarm", rest, (issue) => `Start a swarm run for the project ${folder} with this issue:\n\n${issue}`),
      }),
    },
    remember: {
      description: "Write something into the long-term memory",
      hint: "<what>",
      run: async (rest) => ({ prompt: needed("remember", rest, (what) => `Remember this for good, in the wiki:\n\n${what}`) }),
    },
    recall: {
      description: "What the long-term memory has on something",
      hint: "<topic>",
      async run(rest) {
        const query = needed("recall", rest, encodeURIComponent);
        const found = await listOf<{ path: string; title: string; snippet: string }>(`/api/wiki/search?limit=10&q=${query}`);
        const lines = found.map(({ path, title, snippet }) => `- ${title} (${path}): ${oneLine(snippet, 200)}`);
        return { say: lines.join("\n") || `No page holds ${quoted(rest)}.` };
      },
    },
    approvals: {
      description: "What waits for your decision",
      async run() {
        const waiting = await listOf<Approval>("/api/approvals?state=waiting");
        const how = { allow: "io approval allow", deny: "io approval deny" };
        return { say: waiting.map((approval) => formatApproval(approval, how)).join("\n\n") || "Nothing waits for you." };
      },
    },
    status: {
      description: "What IO is doing",
      async run() {
        const { version, engine, mode, queue, counts } = await request<Status>("GET", "/api/status");
        const { approvalsWaiting = 0, tasksRunning = 0, messagesHeld, tasksHeld } = counts;
        return {
          say: [
            `IO ${version}, ${engine.kind}, ${engine.state}, model ${engine.model}${mode ? `, mode ${mode}` : ""}.`,
            `Messages: ${formatRunning(queue.running, messagesHeld)}, ${queue.waiting} queued. Tasks: ${formatRunning(tasksRunning, tasksHeld)}. Waiting for you: ${approvalsWaiting}.`,
          ].join("\n"),
        };
      },
    },
  };

  /** Undefined for an unknown command. */
  async function run({ name, rest }: Typed, here: Here): Promise<Done | undefined> {
    const command = Object.hasOwn(own, name) ? own[name] : undefined;
    if (command) return command.run(rest, here);
    const skill = (await skills().catch(() => [])).find(({ slug }) => slug === name);
    return skill && { prompt: `Use the skill ${quoted(skill.slug)}. ${rest}`.trim() };
  }

  return {
    async list(): Promise<AvailableCommand[]> {
      const known = await skills().catch(() => []);
      return [
        ...Object.entries(own).map(([name, { description, hint }]) => ({
          ...{ name, description },
          ...(hint !== undefined && { input: { hint } }),
        })),
        ...known
          .filter(({ slug }) => !Object.hasOwn(own, slug))
          .map(({ slug, description }) => ({
            name: slug,
            description: oneLine(description, 200),
            input: { hint: "<for what>" },
          })),
      ];
    },
    /** The prompt for the model; undefined if a command has answered without it. */
    async wordsFor(text: string, here: Here): Promise<string | undefined> {
      const typed = commandIn(text);
      const done = typed && (await run(typed, here));
      if (done?.say === undefined) return done?.prompt ?? text;
      await here.say(done.say);
      return undefined;
    },
  };
}
export type Commands = ReturnType<typeof createCommands>;

function needed<T>(name: string, rest: string, use: (rest: string) => T): T {
  if (rest === "") throw new UserError(`/${name} needs words behind it.`);
  return use(rest);
}
