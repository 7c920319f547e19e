/**
 * The chat's first HTML, ready for typing before any script has loaded; the page's scripts take over, with what was typed. It
 * contains no messages, because a request for it carries only a cookie.
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
