import { createNames, type Format, MAX_NAMES } from "./report.ts";
import { createNameCounts, type Located } from "./same-name.ts";

const POINT = /^ *(not ok|ok)(?: (.*))?$/;
const SUBTEST = /^( *)# Subtest: (.*)$/;
const PLAN = /^1\.\.(\d+)/;
/** Where node:test says in its details that a test stands. */
const LOCATION = /^ *location: '(.+?)(?::\d+){1,2}'$/;

/** The Test Anything Protocol: node:test by default, tape, `prove -v`, bats, `mocha --reporter tap`. */
export function tap(): Format {
  const failed: Located[] = [];
  const counts = createNameCounts();
  let last: Located | undefined;
  /** The subtest that is open at each depth. */
  let path: { indent: number; name: string }[] = [];
  /** The comment above, which names a test if there are no subtests. */
  let group = "";
  let hasSubtests = false;
  let yamlIndent: number | undefined;
  let seen = 0;
  let passed = 0;
  let planned: number | undefined;
  let hasVersion = false;
  let bailedOut = false;

  function nameAt(indent: number, own: string): string {
    const above = path.filter((each) => each.indent < indent).map(({ name }) => name);
    return [...(group !== "" && !hasSubtests ? [group] : above), own].join(" > ");
  }

  return {
    line(text) {
      const indent = text.length - text.trimStart().length;
      if (yamlIndent !== undefined) {
        if (text.trim() === "..." && indent === yamlIndent) yamlIndent = undefined;
        else if (last && last.file === undefined) last.file = LOCATION.exec(text)?.[1];
        return;
      }
      const first = text[indent];
      if (first === "T" && /^TAP version \d+$/.test(text)) hasVersion = true;
      else if (first === "B" && text.startsWith("Bail out!")) bailedOut = true;
      else if (first === "-" && text.trim() === "---" && seen > 0 && indent > 0) yamlIndent = indent;
      else if (first === "#") {
        const subtest = SUBTEST.exec(text);
        if (subtest) {
          hasSubtests = true;
          path = [...path.filter((each) => each.indent < indent), { indent, name: subtest[2]! }];
        } else if (indent === 0 && !/^# (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms|ok)\b/.test(text))
          group = text.slice(1).trim();
      } else if (first === "1" && indent === 0) {
        const plan = PLAN.exec(text);
        if (plan) planned = (planned ?? 0) + Number(plan[1]);
      } else if (first === "o" || first === "n") {
        const point = POINT.exec(text);
        if (!point) return;
        const [, verdict, rest = ""] = point;
        const [named = "", directive = ""] = rest.split(/ # (?=skip|todo)/i);
        const name = named.trim().replace(/^\d+/, "").trim().replace(/^- ?/, "");
        const full = nameAt(indent, name.trim());
        counts.add(full);
        last = undefined;
        if (indent === 0) seen += 1;
        if (verdict === "ok") passed += /^skip/i.test(directive) ? 0 : 1;
        else if (!/^(?:skip|todo)/i.test(directive)) {
          last = { name: full, file: undefined };
          if (failed.length <= MAX_NAMES) failed.push(last);
        }
      }
    },
    report() {
      if (planned === undefined && !hasVersion) return undefined;
      const names = createNames();
      for (const each of failed) names.add(counts.nameOf(each));
      const complete = planned === seen && seen > 0 && !bailedOut && yamlIndent === undefined && names.isWhole();
      return { runner: "TAP", failed: names.list(), passed, complete };
    },
  };
}
