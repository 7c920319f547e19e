/**
 * The chat as it can be typed into before any script has come: the page's own scripts take its place, and what was typed
 * meanwhile. It holds nothing that was said, since whoever asks for it has shown no more than a cookie.
 */
export function firstView(conversation: string): string {
  return [
    '<div class="shell"><div class="side"></div><div class="page"><main id="view"><div class="chat">',
    `<header class="head"><h1>${escaped(conversation)}</h1><div class="row"></div></header>`,
    '<div class="log early" role="log" aria-label="Conversation"><div></div></div>',
    '<form class="composer"><div class="box"><textarea rows="1" aria-label="Message" placeholder="Say something to IO"></textarea>',
    '<div class="row"><button type="submit" class="primary">Send</button></div></div></form>',
    "</div></main></div></div>",
  ].join("");
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ENTITIES[sign]!);
