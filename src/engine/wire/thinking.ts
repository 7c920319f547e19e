const OPEN = "<think>";
const CLOSE = "</think>";

/** Separates an answer from the thoughts that some models put before it between tags. */
export function createThoughts() {
  let state: "start" | "thinking" | "answering" = "start";
  let held = "";

  const push = (piece: string): { thought: string; answer: string } => {
    if (state === "answering") return { thought: "", answer: piece };
    held += piece;
    if (state === "start") {
      const begun = held.trimStart();
      if (begun.length < OPEN.length && OPEN.startsWith(begun)) return { thought: "", answer: "" };
      if (!begun.startsWith(OPEN)) {
        state = "answering";
        return { thought: "", answer: release() };
      }
      state = "thinking";
      held = begun.slice(OPEN.length);
    }
    const end = held.indexOf(CLOSE);
    if (end >= 0) {
      const thought = held.slice(0, end);
      const answer = held.slice(end + CLOSE.length).trimStart();
      held = "";
      state = "answering";
      return { thought, answer };
    }
    // The end of the piece may be the beginning of the closing tag.
    const safe = held.length - overlap(held);
    const thought = held.slice(0, safe);
    held = held.slice(safe);
    return { thought, answer: "" };
  };
  const release = (): string => {
    const all = held;
    held = "";
    return all;
  };
  return {
    push,
    /** Text held back when the stream ended. */
    rest: (): { thought: string; answer: string } =>
      state === "thinking" ? { thought: release(), answer: "" } : { thought: "", answer: release() },
  };
}

function overlap(text: string): number {
  for (let length = Math.min(CLOSE.length - 1, text.length); length > 0; length -= 1) {
    if (CLOSE.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
