const KEPT = 500;

/** Markdown made into HTML that is safe to show: read in a worker, remembered, and cleaned here. Nothing is begun until `ready`. */
export function createMarkdown(startWorker: () => Worker, ready: Promise<void> = Promise.resolve()) {
  let cleaner: Promise<(html: string) => string> | undefined;
  const known = new Map<string, string>();
  const waiting = new Map<number, (html: string) => void>();
  let last = 0;
  let worker: Worker | undefined;
  /** Only once there is something to read: until then it would be in the way of what one waits for. */
  const started = (): Worker => {
    if (worker) return worker;
    worker = startWorker();
    worker.onmessage = ({ data }: MessageEvent<{ id: number; html: string }>) => {
      waiting.get(data.id)?.(data.html);
      waiting.delete(data.id);
    };
    return worker;
  };
  const cleaning = () => {
    cleaner ??= import("./safe-html.ts").then(({ createSanitizer }) => createSanitizer());
    return cleaner;
  };
  return {
    /** What is known already, so that it can be shown at once. */
    known: (text: string): string | undefined => known.get(text),
    async render(text: string, { keep = true } = {}): Promise<string> {
      const before = known.get(text);
      if (before !== undefined) return before;
      await ready;
      void cleaning();
      const raw = await new Promise<string>((resolve) => {
        last += 1;
        waiting.set(last, resolve);
        started().postMessage({ id: last, text });
      });
      const html = (await cleaning())(raw);
      if (keep) known.set(text, html);
      for (const oldest of [...known.keys()].slice(0, Math.max(0, known.size - KEPT))) known.delete(oldest);
      return html;
    },
  };
}
export type Markdown = ReturnType<typeof createMarkdown>;
