import type { Message } from "../../protocol/messages.ts";

/** How many of the latest messages stand in the page itself. */
export const FIRST_MESSAGES = 4;
/** Of what is longer only the end stands there, which is what is in sight. */
const MOST = 4_000;

/**
 * The chat as it can be read and typed into before any script has come: the page's own scripts take its place, and what was
 * typed meanwhile. The words are other people's and models': they are text here, whatever they contain.
 */
export function firstView(conversation: string, latest: readonly Message[]): string {
  const turns = latest.filter(({ status }) => status !== "queued").map(turn);
  return [
    '<div class="shell"><div class="side"></div><div class="page"><div class="needs calm"></div><main id="view"><div class="chat">',
    `<header class="head"><h1>${escaped(conversation)}</h1></header>`,
    `<div class="log early" role="log" aria-label="Conversation"><div>${turns.join("")}</div></div>`,
    '<form class="composer"><textarea rows="1" aria-label="Message" placeholder="Say something to IO"></textarea>',
    '<div class="row"><button type="submit" class="primary">Send</button><button type="button" class="danger" disabled>Stop</button></div></form>',
    "</div></main></div></div>",
  ].join("");
}

function turn({ source, status, text, reply }: Message): string {
  const isOwn = source.channel === "web" || source.channel === "tui" || source.channel === "api";
  const asked =
    source.channel === "background" || source.channel === "schedule"
      ? "<details><summary>What came back</summary></details>"
      : `<p class="words">${escaped(endOf(text))}</p>`;
  return [
    `<article class="turn ${status}"><div class="asked"><p class="who">${isOwn ? "You" : source.channel}</p>${asked}</div>`,
    `<div class="answered"><p class="who">IO</p><div class="markdown plain">${escaped(endOf(reply ?? ""))}</div><p class="cost">&nbsp;</p></div></article>`,
  ].join("");
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const endOf = (text: string): string => (text.length <= MOST ? text : `…${text.slice(-MOST)}`);
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ENTITIES[sign]!);
