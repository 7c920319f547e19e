import { mayHoldMaths } from "./maths.ts";
import { colourCode, renderMarkdown } from "./render-markdown.ts";

/** Renders Markdown and code outside of the main thread. The result is still untrusted. */
self.onmessage = async ({ data }: MessageEvent<{ id: number; text: string; language?: string }>) => {
  const { id, text, language } = data;
  const answer = (result: unknown) => self.postMessage({ id, result });
  if (language !== undefined) answer(colourCode(text, language));
  else if (mayHoldMaths(text)) answer(renderMarkdown(text, (await import("./typeset.ts")).typeset));
  else answer(renderMarkdown(text));
};
