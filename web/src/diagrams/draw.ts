import { type Drawing, type DrawRequest, READY, WANTS_SCRIPT } from "./drawing.ts";

/** A diagram as an image, which runs no scripts and loads nothing. */
export type Picture = { source: string; title: string; width: number; height: number } | { problem: string };

const PATIENCE_MS = 15_000;
const KEPT = 100;
const MOST = 20_000;

/** Draws diagrams in a frame of their own. The frame is created for the first diagram, and again if it stops responding. */
export function createDiagrams(body: HTMLElement) {
  const known = new Map<string, Promise<Picture>>();
  const waiting = new Map<number, (drawing: Drawing) => void>();
  let frame: Promise<Window> | undefined;
  let last = 0;

  const begin = async (): Promise<Window> => {
    const script = await (await fetch(__DIAGRAM_SCRIPT__)).text();
    return new Promise((resolve, reject) => {
      const element = document.createElement("iframe");
      element.setAttribute("sandbox", "allow-scripts");
      element.className = "diagram-frame";
      element.title = "Draws diagrams";
      element.tabIndex = -1;
      element.setAttribute("aria-hidden", "true");
      element.src = "/diagram";
      const listen = ({ source, data }: MessageEvent<unknown>) => {
        if (source === null || source !== element.contentWindow) return;
        if (data === WANTS_SCRIPT) element.contentWindow?.postMessage(script, "*");
        else if (data === READY) {
          clearTimeout(patience);
          resolve(source as Window);
        } else if (isDrawing(data)) waiting.get(data.id)?.(data);
      };
      const patience = setTimeout(() => {
        end(element, listen);
        reject(new Error("The frame for diagrams could not be loaded."));
      }, PATIENCE_MS);
      window.addEventListener("message", listen);
      ends = () => end(element, listen);
      body.append(element);
    });
  };
  let ends = () => {};
  const end = (element: HTMLElement, listen: (event: MessageEvent) => void) => {
    window.removeEventListener("message", listen);
    element.remove();
    frame = undefined;
  };

  const ask = async (text: string, dark: boolean): Promise<Picture> => {
    if (text.length > MOST) return { problem: "it is too long to be drawn" };
    frame ??= begin();
    const target = await frame;
    const drawing = await new Promise<Drawing>((resolve) => {
      last += 1;
      const id = last;
      const patience = setTimeout(() => {
        ends();
        resolve({ id, problem: "it took too long to draw" });
      }, PATIENCE_MS);
      waiting.set(id, (drawn) => {
        clearTimeout(patience);
        resolve(drawn);
      });
      const request: DrawRequest = { id, text, dark };
      // The sandboxed frame has no origin that could be named.
      target.postMessage(request, "*");
    });
    waiting.delete(drawing.id);
    return pictureOf(drawing);
  };

  return {
    draw(text: string, dark: boolean): Promise<Picture> {
      const key = `${dark} ${text}`;
      let drawn = known.get(key);
      if (!drawn) {
        drawn = ask(text, dark).catch((error: Error) => ({ problem: error.message }));
        known.set(key, drawn);
        for (const oldest of [...known.keys()].slice(0, Math.max(0, known.size - KEPT))) known.delete(oldest);
      }
      return drawn;
    },
  };
}
export type Diagrams = ReturnType<typeof createDiagrams>;

const isDrawing = (data: unknown): data is Drawing =>
  typeof data === "object" && data !== null && "id" in data && typeof data.id === "number";

/** The frame's response is untrusted: it is used as text for an image, and its numbers are kept within bounds. */
function pictureOf(drawing: Drawing): Picture {
  if ("problem" in drawing) return { problem: String(drawing.problem).split("\n", 1)[0] ?? "" };
  const size = (value: unknown) => Math.round(Math.min(4_000, Math.max(16, Number(value) || 16)));
  return {
    source: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(String(drawing.svg))}`,
    title: String(drawing.title).slice(0, 200),
    width: size(drawing.width),
    height: size(drawing.height),
  };
}
