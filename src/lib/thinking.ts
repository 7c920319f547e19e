const NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad";
/** An opening tag counts only at the start of a line, since text about such tags mentions them mid-sentence. */
const TAG = new RegExp(`(?<=^[ \\t]{0,8})<(?:${NAMES})>|</(?:${NAMES})>`, "gim");

/**
 * Removes thinking between tags from a reply, as small models emit it when their server does not parse it. Some servers drop the
 * opening tag: then everything before a closing tag on its own line is thinking.
 */
export function withoutThinking(reply: string): string {
  const said: string[] = [];
  let from = 0;
  let isThinking = false;
  for (const { 0: tag, index } of reply.matchAll(TAG)) {
    const end = index + tag.length;
    const isClosing = tag.startsWith("</");
    if (isThinking && isClosing) {
      from = end;
      isThinking = false;
    } else if (!isThinking && !isClosing) {
      said.push(reply.slice(from, index));
      isThinking = true;
    } else if (!isThinking && said.length === 0 && isAlone(reply, index, end)) from = end;
  }
  return isThinking ? said.join("") : said.join("") + reply.slice(from);
}

function isAlone(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 20), start);
  return /(?:^|\n)[ \t]*$/.test(before) && /^[ \t]*(?:\r?\n|$)/.test(text.slice(end, end + 20));
}
