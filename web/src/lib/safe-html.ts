import DOMPurify from "dompurify";

const TAGS = "p br hr h1 h2 h3 h4 h5 h6 strong em s del code pre blockquote ul ol li table thead tbody tr th td a span".split(
  " ",
);
/** The tags of formulas: only those that draw, none that link, act or contain HTML. */
const MATHS =
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd menclose".split(
    " ",
  );
const MATHS_ATTRIBUTES =
  "display displaystyle scriptlevel mathvariant stretchy symmetric fence separator largeop movablelimits accent accentunder form lspace rspace minsize maxsize linethickness width height depth voffset notation columnalign rowspan columnspan".split(
    " ",
  );
/** Links may lead to web pages, mail addresses or relative addresses. */
const ADDRESS = /^(?:https?:|mailto:|[^a-z]|[a-z+.-]+(?:[^a-z+.\-:]|$))/i;

/** Removes everything from rendered Markdown except formatted text. External links show their target. */
export function createSanitizer(): (html: string) => string {
  const purify = DOMPurify(window);
  purify.addHook("afterSanitizeAttributes", (node) => {
    if (
      node.hasAttribute("class") &&
      !/^(?:hljs-[\w-]+ ?|language-[\w-]+ ?|tml-[\w-]+ ?)+[\w-]*$/.test(node.getAttribute("class") ?? "")
    )
      node.removeAttribute("class");
    if (!(node instanceof HTMLElement)) return;
    if (node.tagName === "PRE") node.tabIndex = 0;
    if (node.tagName === "A") explain(node as HTMLAnchorElement);
  });
  return (html) =>
    purify.sanitize(html, {
      ALLOWED_TAGS: [...TAGS, ...MATHS],
      ALLOWED_ATTR: ["href", "class", "start", "align", ...MATHS_ATTRIBUTES],
      ALLOW_DATA_ATTR: false,
      ALLOW_ARIA_ATTR: false,
      ALLOWED_URI_REGEXP: ADDRESS,
    });
}

function explain(link: HTMLAnchorElement): void {
  const href = link.getAttribute("href");
  if (href === null || !/^(?:https?|mailto):/i.test(href)) return;
  link.rel = "noopener noreferrer nofollow external";
  link.target = "_blank";
  const target = /^mailto:/i.test(href) ? href.slice("mailto:".length) : URL.canParse(href) ? new URL(href).host : href;
  if (link.textContent?.includes(target)) return;
  const shown = link.ownerDocument.createElement("span");
  shown.className = "goes-to";
  shown.textContent = ` (${target})`;
  link.append(shown);
}
