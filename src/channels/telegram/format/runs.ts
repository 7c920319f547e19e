/** A stretch of text with one style. */
export interface Run {
  text: string;
  bold?: boolean;
  italic?: boolean;
  strike?: boolean;
  code?: boolean;
  quote?: boolean;
  link?: string;
  /** A code block, with its language or "". */
  pre?: string;
  /** The gap between two blocks. */
  gap?: boolean;
}

/** Whether Telegram would make an entity of it. */
export function isMarked({ bold, italic, strike, code, quote, link, pre }: Run): boolean {
  return Boolean(bold || italic || strike || code || quote || link !== undefined || pre !== undefined);
}

export const plainOf = (runs: readonly Run[]): string => runs.map(({ text }) => text).join("");

type Style = "bold" | "italic" | "strike";
const TAGS: Record<Style, string> = { bold: "b", italic: "i", strike: "s" };
const STYLES = Object.keys(TAGS) as Style[];

/** The runs as Telegram's HTML: each tag closes before the next quote, link or code begins. */
export function htmlOf(runs: readonly Run[]): string {
  return grouped(runs, (a, b) => Boolean(a.quote) === Boolean(b.quote))
    .map((group) => (group[0]!.quote ? `<blockquote>${inner(group)}</blockquote>` : inner(group)))
    .join("");
}

function inner(runs: readonly Run[]): string {
  return grouped(runs, (a, b) => a.link === b.link)
    .map((group) => {
      const { link } = group[0]!;
      const shown = group.map((run) => styled(run)).join("");
      return link === undefined ? shown : `<a href="${escaped(link).replaceAll('"', "&quot;")}">${shown}</a>`;
    })
    .join("");
}

function styled(run: Run): string {
  const text = escaped(run.text);
  if (run.pre !== undefined)
    return run.pre === "" ? `<pre>${text}</pre>` : `<pre><code class="language-${escaped(run.pre)}">${text}</code></pre>`;
  if (run.code) return `<code>${text}</code>`;
  return STYLES.reduce((shown, style) => (run[style] ? `<${TAGS[style]}>${shown}</${TAGS[style]}>` : shown), text);
}

function grouped(runs: readonly Run[], belong: (a: Run, b: Run) => boolean): Run[][] {
  const groups: Run[][] = [];
  for (const run of runs) {
    const last = groups.at(-1);
    if (last && belong(last[0]!, run)) last.push(run);
    else groups.push([run]);
  }
  return groups;
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
