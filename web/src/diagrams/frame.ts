import mermaid from "mermaid";
import { type Drawing, type DrawRequest, READY } from "./drawing.ts";

/**
 * Draws diagrams inside a frame without origin, network or any other access: the page sends it text and receives the text of a
 * picture. Whatever a hostile diagram achieves stays in this frame.
 */
const LIGHT = {
  background: "#fffdfa",
  primaryColor: "#f1ece4",
  primaryTextColor: "#1f1b2d",
  primaryBorderColor: "#0b6b77",
  lineColor: "#625b70",
  secondaryColor: "#dcf0f1",
  tertiaryColor: "#fbefd9",
  noteBkgColor: "#fbefd9",
  noteTextColor: "#1f1b2d",
};
const DARK = {
  ...{ background: "#1a1726", primaryColor: "#252036", primaryTextColor: "#ece8f6", primaryBorderColor: "#5ed3de" },
  ...{ lineColor: "#a79fbd", secondaryColor: "#12303a", tertiaryColor: "#33260f", noteBkgColor: "#33260f" },
  noteTextColor: "#ece8f6",
};

async function draw({ id, text, dark }: DrawRequest): Promise<Drawing> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    maxTextSize: 20_000,
    maxEdges: 400,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    fontFamily: "system-ui, sans-serif",
    theme: "base",
    themeVariables: { darkMode: dark, ...(dark ? DARK : LIGHT) },
    // Settings that a diagram must not override.
    secure: [
      "secure",
      "securityLevel",
      "startOnLoad",
      "suppressErrorRendering",
      "maxTextSize",
      "maxEdges",
      "htmlLabels",
      "themeCSS",
    ],
  });
  try {
    const { svg } = await mermaid.render(`diagram-${id}`, text);
    const holder = document.createElement("div");
    holder.innerHTML = svg;
    const drawn = holder.querySelector("svg");
    if (!drawn) return { id, problem: "it came out empty" };
    const [, , width = 300, height = 150] = (drawn.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    drawn.setAttribute("width", String(width));
    drawn.setAttribute("height", String(height));
    drawn.style.removeProperty("max-width");
    const title = drawn.querySelector(":scope > title")?.textContent ?? "";
    return { id, svg: new XMLSerializer().serializeToString(drawn), title, width, height };
  } catch (error) {
    return { id, problem: error instanceof Error ? error.message : String(error) };
  }
}

let last: Promise<void> = Promise.resolve();
window.addEventListener("message", ({ data, source }: MessageEvent<DrawRequest>) => {
  if (source !== window.parent) return;
  // One at a time, because drawing measures the diagram in the document.
  last = last.then(async () => window.parent.postMessage(await draw(data), "*"));
});
window.parent.postMessage(READY, "*");
