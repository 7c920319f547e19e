import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { addSampleSkill, SAMPLE_ISSUE, SAMPLE_SKILL } from "../daemon/sample.ts";
import { UserError } from "../lib/errors.ts";
import type { Message } from "../protocol/messages.ts";
import type { Run } from "../protocol/runs.ts";
import type { Skill } from "../protocol/skills.ts";
import type { Task } from "../protocol/squads.ts";

/** A message of the tour, and its reply. */
export interface Exchange {
  said: string;
  reply: string;
}

export interface Scene {
  name: "chat" | "wiki" | "squad" | "skill" | "swarm";
  title: string;
  exchanges: Exchange[];
  /** The resulting change in the store, in one sentence. */
  proof: string;
}

export interface TourDeps {
  client: Client;
  project: string;
  skillsFolder: string;
  /** Called before and after each message. */
  onSay: (said: string) => void;
  onReply: (reply: string) => void;
  onWait: (what: string) => void;
}

interface Plan {
  name: Scene["name"];
  title: string;
  play: (talk: (text: string) => Promise<string>) => Promise<string>;
}

/** The scenes in order; each checks what it left in the store, and fails if that is missing. */
export function scenesOf({ client, project, skillsFolder, onSay, onReply, onWait }: TourDeps) {
  const plans: Plan[] = [
    {
      name: "chat",
      title: "A chat. What you say is on disk before it is answered; nothing is lost if the machine goes down.",
      async play(talk) {
        await talk("hello");
        const { items } = await client.request<{ items: Message[] }>("GET", "/api/messages");
        return `The conversation main holds ${items.length === 1 ? "one message" : `${items.length} messages`}.`;
      },
    },
    {
      name: "wiki",
      title: "A memory. What IO is to remember are markdown files of yours, with history and a search.",
      async play(talk) {
        await talk("remember that we say goodbye in English");
        await talk("what do you know about goodbye?");
        const { items } = await client.request<{ items: { path: string }[] }>("GET", "/api/wiki/search?q=goodbye");
        return `The wiki has ${must(items[0], "no page was written").path}.`;
      },
    },
    {
      name: "squad",
      title:
        "A squad. A lasting team for a project; its agents work in the background, and IO keeps its own record of what they did.",
      async play(talk) {
        const formed = await talk("form a squad here");
        const slug = must(/The squad (\S+) is formed/.exec(formed)?.[1], "no squad was formed");
        await talk(`ask the ${slug} squad to run \`node --test test/greet.test.js\``);
        onWait("the agent to finish");
        const { items } = await client.request<{ items: Task[] }>("GET", `/api/tasks?squad=${slug}`);
        const task = await ended(() => client.request<Task>("GET", `/api/tasks/${must(items[0], "no task was made").id}`));
        const verdict = must(task.evidence?.verdict, "there is no evidence");
        return `Task ${task.id} of ${task.agent} is ${task.status}; IO itself saw: ${verdict}.`;
      },
    },
    {
      name: "skill",
      title: "A skill. A folder that says how to do a kind of work; it does nothing before you have switched it on.",
      async play(talk) {
        addSampleSkill(skillsFolder);
        onWait(`io skill enable ${SAMPLE_SKILL}`);
        const skill = await client.request<Skill>("POST", `/api/skills/${SAMPLE_SKILL}/enable`);
        await talk(`use the ${SAMPLE_SKILL} skill`);
        return `The skill ${skill.slug} is ${skill.enabled ? "on" : "off"}, and its command was run in the project.`;
      },
    },
    {
      name: "swarm",
      title:
        "A run of the pipeline. From an issue to reviewed, tested code on a branch of its own; your checkout stays as it is.",
      async play(talk) {
        const begun = await talk(`run the pipeline here: ${SAMPLE_ISSUE}`);
        const id = must(/Run (r_\w+) has begun/.exec(begun)?.[1], "no run was begun");
        onWait("specification, tasks, code, reviews and tests");
        const run = await ended(() => client.request<Run>("GET", `/api/runs/${id}`));
        if (run.outcome !== "approved") throw new UserError(`The run ${id} ended as ${run.outcome}: ${run.reason ?? ""}`);
        return `Run ${id} is ${run.status}, every reviewer ${run.outcome}, on the branch ${run.branch}.`;
      },
    },
  ];

  async function play({ name, title, play: act }: Plan): Promise<Scene> {
    const exchanges: Exchange[] = [];
    const talk = async (said: string): Promise<string> => {
      onSay(said);
      const { reply, error } = await client.ask({ text: said, folder: project });
      if (reply === null) throw new UserError(`"${said}" was not answered: ${error?.message ?? "nobody knows why"}`);
      exchanges.push({ said, reply });
      onReply(reply);
      return reply;
    };
    return { name, title, exchanges, proof: await act(talk) };
  }
  return plans.map((plan) => ({ title: plan.title, play: () => play(plan) }));
}

const DEADLINE_MS = 180_000;

async function ended<T extends { finishedAt: string | null }>(look: () => Promise<T>): Promise<T> {
  const until = performance.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found.finishedAt !== null) return found;
    if (performance.now() > until) throw new UserError("It did not end within three minutes.");
    await sleep(200);
  }
}

function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new UserError(`The tour did not go as it should: ${what}.`);
  return value;
}
