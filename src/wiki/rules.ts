import { z } from "zod";
import { conflict, missing, UserError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { named, oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Source } from "../protocol/messages.ts";
import type { NewRule, Rule } from "../protocol/rules.ts";
import type { Store } from "../store/open.ts";
import type { RuleRows } from "../store/rules.ts";
import { type Tool, ToolError, tool } from "../tools/tool.ts";
import { rulesIn, sentenceNamed } from "./rule-words.ts";

export interface RulesDeps {
  store: Pick<Store, "transaction">;
  rows: RuleRows;
  /** The project's folder of a conversation, whose rules are for that project alone. */
  folderOf: (conversation: string) => string | null;
  emit: Emit;
  now?: () => Date;
}

/** Every rule is told in every request, so there cannot be many. */
const MOST = 100;
/** Who speaks for themselves. What comes from programs, tasks and schedules rules nothing. */
const PEOPLE: readonly string[] = ["tui", "web", "telegram", "api"];

/** What the user ruled, kept apart from everything that can be summarised or forgotten. */
export function createRules({ store, rows, folderOf, emit, now = () => new Date() }: RulesDeps) {
  function add({ text, conversation }: NewRule, origin: string): Rule {
    const place = conversation ?? null;
    return store.transaction(() => {
      const known = rows.same(text, place);
      if (known) return known;
      if (rows.list().length >= MOST)
        throw conflict(`There are ${MOST} rules already, and each is told with every message. Remove some: io rules remove <id>`);
      const rule = { id: newId("k"), text, conversation: place, origin, createdAt: now().toISOString() };
      rows.add(rule);
      emit({ type: "rule.added", data: rule });
      return rule;
    });
  }

  const lines = (isOfPlace: (rule: Rule) => boolean): string =>
    rows
      .list()
      .filter((rule) => rule.conversation === null || isOfPlace(rule))
      .map(({ text }) => `- ${oneLine(text, 500)}`)
      .join("\n");

  /** In a project's conversation a rule is meant for that project. */
  function keep(text: string, conversation: string, source: Source): Rule {
    const place = folderOf(conversation) === null ? {} : { conversation };
    return add({ text, ...place }, `said in ${conversation} by ${source.channel}`);
  }

  return {
    list: rows.list,
    add,
    remove(id: string): Rule {
      return store.transaction(() => {
        const rule = rows.find(id);
        if (!rule) throw missing(`There is no rule "${id.slice(0, 60)}". List them with: io rules`);
        rows.remove(id);
        emit({ type: "rule.removed", data: rule });
        return rule;
      });
    },
    /** Keeps what a person rules in a message, in the transaction that keeps the message. */
    hear({ text, conversation, source }: { text: string; conversation: string; source: Source }): void {
      if (!PEOPLE.includes(source.channel)) return;
      for (const ruled of rulesIn(text)) {
        if (rows.list().length >= MOST) return;
        keep(ruled, conversation, source);
      }
    },
    /**
     * Keeps a sentence of a person's that the model takes for a rule, in whatever language. The model only points at it: the rule
     * is what the person said, so nothing that the model read elsewhere can become one.
     */
    point(words: string, said: { text: string; conversation: string; source: Source }[]): Rule {
      for (const { text, conversation, source } of said) {
        const sentence = PEOPLE.includes(source.channel) ? sentenceNamed(words, text) : undefined;
        if (sentence !== undefined) return keep(sentence, conversation, source);
      }
      throw new UserError(
        "A rule is a sentence of the user's own, and this is none of the message that you answer. Give one whole sentence of it word for word, or tell the user: io rules add",
      );
    },
    /** The rules that hold in a conversation, for the system message. */
    tell: (conversation: string): string => lines(({ conversation: place }) => place === conversation),
    /** The same for agents that work on a project: what was ruled in its conversations holds for them too. */
    tellFor: (projectPath: string): string =>
      lines(({ conversation }) => conversation !== null && folderOf(conversation) === projectPath),
  };
}
export type Rules = ReturnType<typeof createRules>;

/** Lets the model name a rule in what it was just told. `saidTo` tells what a person said in the message that a call is made for. */
export function ruleTool(
  rules: Pick<Rules, "point">,
  saidTo: (owner: string) => { text: string; conversation: string; source: Source }[],
): Tool {
  return tool({
    name: "rule_add",
    description:
      "Keep something the user just ruled for good (in any language), so that it holds in every session. Only a whole sentence of the user's message, word for word; one that begins with Always, Never or From now on is kept without you.",
    schema: z.strictObject({ sentence: z.string().min(1).max(500) }),
    kind: "effect",
    deadlineMs: 10_000,
    async run({ sentence }, { owner }) {
      try {
        const { id, text } = rules.point(sentence, saidTo(owner));
        return `Kept as rule ${named(id)}: ${oneLine(text, 500)}`;
      } catch (error) {
        if (error instanceof UserError) throw new ToolError(error.message);
        throw error;
      }
    },
  });
}
