import { computed, ref } from "vue";
import { at, get } from "../lib/api.ts";
import type { OwnCommand, PageCommand } from "./commands.ts";

/** An option that can replace the word before the caret. */
export interface Option {
  words: string;
  says: string;
}

interface Word {
  kind: "command" | "file";
  text: string;
  from: number;
}

/** The word before the caret, if it can be completed. */
export function wordAt(text: string, caret: number): Word | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([a-z0-9_-]{0,41})$/i.exec(before);
  if (command) return { kind: "command", text: command[1]!.toLowerCase(), from: 0 };
  const start = Math.max(before.lastIndexOf(" "), before.lastIndexOf("\n"), before.lastIndexOf("(")) + 1;
  const word = before.slice(start);
  return word.startsWith("@") && word.length < 300 ? { kind: "file", text: word.slice(1), from: start } : undefined;
}

/** Completes files after an @ and commands after a slash, in the field of a conversation. */
export function useCompletion(conversation: string, commands: readonly PageCommand[]) {
  const options = ref<Option[]>([]);
  const chosen = ref(0);
  const own = ref<OwnCommand[]>([]);
  let word: Word | undefined;
  let asked = 0;

  async function find({ kind, text }: Word): Promise<Option[]> {
    if (kind === "file") {
      const path = `${at("conversations", conversation)}/files?limit=8&q=${encodeURIComponent(text)}`;
      const { items } = await get<{ items: { path: string }[] }>(path);
      return items.map(({ path: each }) => ({ words: `@${each.replaceAll(" ", "\\ ")}`, says: "" }));
    }
    await readOwn();
    const all = [...commands, ...own.value.filter(({ name }) => !commands.some((each) => each.name === name))];
    return all
      .filter(({ name }) => name.startsWith(text))
      .map((each) => ({
        words: `/${each.name}`,
        says: "source" in each ? `${each.description} (${each.source})` : each.description,
      }));
  }
  async function readOwn(): Promise<OwnCommand[]> {
    own.value = (await get<{ items: OwnCommand[] }>(`${at("conversations", conversation)}/commands`)).items;
    return own.value;
  }
  function close(): void {
    asked += 1;
    word = undefined;
    options.value = [];
  }
  return {
    options,
    chosen,
    isOpen: computed(() => options.value.length > 0),
    readOwn,
    close,
    async look(text: string, caret: number): Promise<void> {
      const found = wordAt(text, caret);
      if (!found) return close();
      const number = ++asked;
      // Until the response arrives, show only the previous options that still match.
      const fits = ({ words }: Option) => words.slice(1).toLowerCase().includes(found.text.toLowerCase());
      const stillFit = word?.kind === found.kind && word.from === found.from ? options.value.filter(fits) : [];
      if (stillFit.length < options.value.length) chosen.value = 0;
      options.value = stillFit;
      // If this fails, there are no options, but the text can still be sent.
      const offered = await find(found).catch(() => []);
      if (number !== asked) return;
      const isWhole = offered.length === 1 && offered[0]!.words === text.slice(found.from, caret);
      word = found;
      chosen.value = 0;
      options.value = isWhole ? [] : offered;
    },
    move(by: number): void {
      const count = options.value.length;
      chosen.value = (chosen.value + by + count) % count;
    },
    /** Returns the text with the option in place of the word, and the new position of the caret. */
    take(index: number, text: string, caret: number): { text: string; caret: number } | undefined {
      const option = options.value[index];
      if (!option || !word) return undefined;
      const before = `${text.slice(0, word.from)}${option.words} `;
      close();
      return { text: before + text.slice(caret).replace(/^ /, ""), caret: before.length };
    },
  };
}
