import { type InjectionKey, inject } from "vue";
import type { Markdown } from "./markdown.ts";

export const MARKDOWN: InjectionKey<Markdown> = Symbol("markdown");

export function useMarkdown(): Markdown {
  const markdown = inject(MARKDOWN);
  if (!markdown) throw new Error("There is no page around this.");
  return markdown;
}
