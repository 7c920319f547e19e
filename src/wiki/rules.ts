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
  /** A conversation's project folder; its rules apply to that project only. */
  folderOf: (conversation: string) => string | null;
  emit: Emit;
  now?: () => Date;
}

/** Every request includes every rule, so there cannot be many. */
const MAX_RULES = 100;
/** Channels on which a person speaks. Programs, tasks and schedules cannot add rules. */
const HUMAN_CHANNELS: readonly string[] = ["tui", "web", "telegram", "api"];

/** The user's standing rules, stored separately from anything that can be summarised or forgotten. */
export function createRules({ store, rows, folderOf, emit, now = () => new Date() }: RulesDeps) {
  function add({ text, conversation }: NewRule, origin: string): Rule {
    const scope = conversation ?? null;
    return store.transaction(() => {
      const known = rows.same(text, scope);
      if (known) return known;
      if (rows.list().length >= MAX_RULES)
        throw conflict(
          `There are ${MAX_RULES} rules already, and each is told with every message. Remove some: io rules remove <id>`,
        );
      const rule = { id: newId("k"), text, conversation: scope, origin, createdAt: now().toISOString() };
      rows.add(rule);
      emit({ type: "rule.added", data: rule });
      return rule;
    });
  }

  const lines = (applies: (rule: Rule) => boolean): string =>
    rows
      .list()
      .filter((rule) => rule.conversation === null || applies(rule))
      .map(({ text }) => `- ${oneLine(text, 500)}`)
      .join("\n");

  /** In a project's conversation, a rule applies to that project. */
  function keep(text: string, conversation: string, source: Source): Rule {
    const scope = folderOf(conversation) === null ? {} : { conversation };
    return add({ text, ...scope }, `said in ${conversation} by ${source.channel}`);
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
    /** Stores the rules in a person's message, in the same transaction as the message. */
    learn({ text, conversation, source }: { text: string; conversation: string; source: Source }): void {
      if (!HUMAN_CHANNELS.includes(source.channel)) return;
      for (const ruled of rulesIn(text)) {
        if (rows.list().length >= MAX_RULES) return;
        keep(ruled, conversation, source);
      }
    },
    /**
     * Stores a person's sentence that the model recognised as a rule, in any language. The model only points at it: the rule is
     * what the person said, so nothing that the model read elsewhere can become one.
     */
    addQuoted(words: string, said: { text: string; conversation: string; source: Source }[]): Rule {
      for (const { text, conversation, source } of said) {
        const sentence = HUMAN_CHANNELS.includes(source.channel) ? sentenceNamed(words, text) : undefined;
        if (sentence !== undefined) return keep(sentence, conversation, source);
      }
      throw new UserError(
        "A rule is a sentence of the user's own, and this is none of the message that you answer. Give one whole sentence of it word for word, or tell the user: io rules add",
      );
    },
    /** The rules for a conversation, for the system message. */
    textFor: (conversation: string): string => lines((rule) => rule.conversation === conversation),
    /** The rules for agents that work on a project, including those from its conversations. */
    textForProject: (projectPath: string): string =>
      lines(({ conversation }) => conversation !== null && folderOf(conversation) === projectPath),
  };
}
export type Rules = ReturnType<typeof createRules>;

/** Lets the model point at a rule in the user's message. `saidTo` returns what a person said in the message behind a call. */
export function ruleTool(
  rules: Pick<Rules, "addQuoted">,
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
        const { id, text } = rules.addQuoted(sentence, saidTo(owner));
        return `Kept as rule ${named(id)}: ${oneLine(text, 500)}`;
      } catch (error) {
        if (error instanceof UserError) throw new ToolError(error.message);
        throw error;
      }
    },
  });
}
