import type { Diagrams, Picture } from "../diagrams/draw.ts";
import type { Token } from "./code-tokens.ts";

const KEPT = 500;

/** Renders Markdown to safe HTML: parsed in a worker, cached, and sanitised here. Nothing starts before `ready`. */
export function createMarkdown(startWorker: () => Worker, ready: Promise<void> = Promise.resolve()) {
  let cleaner: Promise<(html: string) => string> | undefined;
  const known = new Map<string, string>();
  const waiting = new Map<number, (result: unknown) => void>();
  let last = 0;
  let worker: Worker | undefined;
  /** Starts the worker for the first text, since earlier it would slow down loading the page. */
  const started = (): Worker => {
    if (worker) return worker;
    worker = startWorker();
    worker.onmessage = ({ data }: MessageEvent<{ id: number; result: unknown }>) => {
      waiting.get(data.id)?.(data.result);
      waiting.delete(data.id);
    };
    return worker;
  };
  const ask = <T>(question: { text: string; language?: string }): Promise<T> =>
    new Promise((resolve) => {
      last += 1;
      waiting.set(last, (result) => resolve(result as T));
      started().postMessage({ id: last, ...question });
    });
  let diagrams: Promise<Diagrams> | undefined;
  const cleaning = () => {
    cleaner ??= import("./safe-html.ts").then(({ createSanitizer }) => createSanitizer());
    return cleaner;
  };
  return {
    /** The cached HTML, which can be shown at once. */
    known: (text: string): string | undefined => known.get(text),
    async render(text: string, { keep = true } = {}): Promise<string> {
      const before = known.get(text);
      if (before !== undefined) return before;
      await ready;
      void cleaning();
      const raw = await ask<string>({ text });
      const html = withCopyButtons((await cleaning())(raw));
      if (keep) known.set(text, html);
      for (const oldest of [...known.keys()].slice(0, Math.max(0, known.size - KEPT))) known.delete(oldest);
      return html;
    },
    /** Draws a diagram as a picture. The drawing code is loaded for the first one. */
    async diagram(text: string, dark: boolean): Promise<Picture> {
      await ready;
      diagrams ??= import("../diagrams/draw.ts").then(({ createDiagrams }) => createDiagrams(document.body));
      return (await diagrams).draw(text, dark);
    },
    /** Highlights code line by line; undefined if it is too long or its language is unknown. */
    async colour(text: string, language: string): Promise<Token[][] | undefined> {
      await ready;
      return ask({ text, language });
    },
  };
}
/** Sanitised HTML contains no literal tags in its text, so every match is a real code block. */
const withCopyButtons = (html: string): string =>
  html
    .replaceAll("<pre", '<div class="code-block"><button type="button" class="copy-code">Copy</button><pre')
    .replaceAll("</pre>", "</pre></div>");

export type Markdown = ReturnType<typeof createMarkdown>;
