import { renderMarkdown } from "./render-markdown.ts";

/** Reads markdown away from the page's own thread; what comes back is not trusted yet. */
self.onmessage = ({ data }: MessageEvent<{ id: number; text: string }>) => {
  self.postMessage({ id: data.id, html: renderMarkdown(data.text) });
};
