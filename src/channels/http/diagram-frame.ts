import { createHash } from "node:crypto";

/** Runs one script that the surrounding page sends: the frame itself cannot load any. */
const SCRIPT = [
  "addEventListener('message', ({ data, source }) => {",
  "  if (source !== parent || typeof data !== 'string') return;",
  "  const src = URL.createObjectURL(new Blob([data], { type: 'text/javascript' }));",
  "  document.head.append(Object.assign(document.createElement('script'), { src }));",
  "}, { once: true });",
  "parent.postMessage('io: frame', '*');",
].join("\n");
const hash = createHash("sha256").update(SCRIPT).digest("base64");

/**
 * The frame in which the page draws untrusted diagrams. It has no origin, even if opened directly, can reach nothing, and can
 * only be embedded in IO's page. A diagram's own styles apply only inside the frame.
 */
export const FRAME_PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>IO draws a diagram</title><script>${SCRIPT}</script></head><body></body></html>`;
export const FRAME_HEADERS = {
  "content-security-policy": [
    "sandbox allow-scripts",
    "default-src 'none'",
    `script-src 'sha256-${hash}' blob:`,
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join("; "),
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-cache",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};
