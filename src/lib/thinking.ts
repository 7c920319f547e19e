const NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad";
/** The first tag at the beginning of a line, the last one anywhere: whoever writes of such tags does so amid other words. */
const TAG = new RegExp(`(?<=^[ \\t]{0,8})<(?:${NAMES})>|</(?:${NAMES})>`, "gim");

/**
 * A reply without what a model thought aloud between tags, as small models do that are served without a parser for it: that is
 * no part of the answer. Some servers leave out the first tag, so that everything before a last one on a line of its own is thought.
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
