/**
 * Makes one node's children match another's and changes only what differs, so that the reader's view, selection and scroll
 * position are preserved while text grows.
 */
export function patchChildren(shown: Node, wanted: Node): void {
  const now = [...shown.childNodes];
  const next = [...wanted.childNodes];
  for (const [index, fresh] of next.entries()) {
    const old = now[index];
    if (!old) shown.appendChild(fresh);
    else if (old.isEqualNode(fresh)) continue;
    else if (old instanceof Text && fresh instanceof Text) old.data = fresh.data;
    else if (isSameKind(old, fresh)) patchChildren(old, fresh);
    else shown.replaceChild(fresh, old);
  }
  for (const extra of now.slice(next.length)) shown.removeChild(extra);
}

const isSameKind = (a: Node, b: Node): boolean =>
  a instanceof Element && b instanceof Element && a.tagName === b.tagName && a.cloneNode(false).isEqualNode(b.cloneNode(false));

/** Leaves out an incomplete table or row at the end of the text, which would be rendered as something else. */
export function withoutUnfinishedRow(text: string): string {
  const start = text.lastIndexOf("\n\n") + 1;
  const block = text.slice(start).replace(/^\n/, "");
  if (!block.startsWith("|")) return text;
  const rows = block.split("\n");
  const whole = rows.slice(0, -1);
  const kept = whole.length < 2 ? "" : whole.join("\n");
  return text.slice(0, text.length - block.length) + kept;
}
