import { mayHoldMaths } from "./maths.ts";
import { colourCode, renderMarkdown } from "./render-markdown.ts";

/** Reads markdown and code away from the page's own thread; what comes back is not trusted yet. */
self.onmessage = async ({ data }: MessageEvent<{ id: number; text: string; language?: string }>) => {
  const { id, text, language } = data;
  const answer = (result: unknown) => self.postMessage({ id, result });
  if (language !== undefined) answer(colourCode(text, language));
  else if (mayHoldMaths(text)) answer(renderMarkdown(text, (await import("./typeset.ts")).typeset));
  else answer(renderMarkdown(text));
};
