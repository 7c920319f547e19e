/** Reads YAML values leniently: a value of another kind than asked for counts as absent. */
export type Yaml = Readonly<Record<string, unknown>>;
export const isMap = (value: unknown): value is Yaml => typeof value === "object" && value !== null && !Array.isArray(value);
export const mapOf = (value: unknown): Yaml => (isMap(value) ? value : {});
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";

const MAX_ROWS = 24;
const MAX_KEYS = 8;
export const OTHER_SYSTEM = /windows|macos/i;

/** The values of a workflow's placeholders in one of its runs. */
export interface Values {
  /** One row of the job's matrix; undefined if the matrix is computed while the workflow runs. */
  matrix: Yaml | undefined;
  env: Readonly<Record<string, string>>;
  inputs: Readonly<Record<string, string>>;
}

/** The rows of a job's matrix, at most a handful, without those of other systems. */
export function rowsOf(strategy: unknown): (Yaml | undefined)[] {
  const matrix = mapOf(strategy).matrix;
  if (matrix === undefined) return [{}];
  if (!isMap(matrix)) return [undefined];
  const { include, exclude, ...axes } = matrix;
  const names = Object.keys(axes).slice(0, MAX_KEYS);
  if (names.some((name) => !Array.isArray(axes[name])) || typeof include === "string") return [undefined];
  let rows: Yaml[] = names.length === 0 ? [] : [{}];
  for (const name of names)
    rows = rows.flatMap((row) => listOf(axes[name]).map((value) => ({ ...row, [name]: value }))).slice(0, MAX_ROWS * 4);
  const isSame = (row: Yaml, other: Yaml, keys: readonly string[]) =>
    keys.every((key) => textOf(row[key]) === textOf(other[key]));
  rows = rows.filter((row) => !listOf(exclude).some((one) => isMap(one) && isSame(row, one, Object.keys(one))));
  for (const extra of listOf(include).filter(isMap)) {
    const shared = Object.keys(extra).filter((key) => names.includes(key));
    const fitting = rows.filter((row) => shared.length > 0 && isSame(row, extra, shared));
    rows = fitting.length > 0 ? rows.map((row) => (fitting.includes(row) ? { ...row, ...extra } : row)) : [...rows, extra];
  }
  return rows.filter((row) => !Object.values(row).some((value) => OTHER_SYSTEM.test(textOf(value)))).slice(0, MAX_ROWS);
}

const PLACEHOLDER = /\$\{\{([^{}]{1,200})\}\}/g;
/** A version in a matrix chooses a toolchain; here only the installed one exists, so such an option is left out. */
const VERSIONED = /(^|\s)(?:-[\w.-]{1,60}=|\+)\$\{\{([^{}]{1,200})\}\}(?=\s|$)/g;
const VERSION = /^v?\d+(?:\.(?:\d+|x))*$|^(?:stable|beta|nightly)$/;
const SAFE = /^[\w@%+=:,./ -]{0,200}$/;

/** Replaces the placeholders whose values can be known. A line in which others remain is not read. */
export function resolvePlaceholders(text: string, values: Values): string {
  return text
    .replace(VERSIONED, (whole, before: string, inner: string) =>
      /^\s*(?:matrix|env)\./.test(inner) && VERSION.test(evaluate(inner, values) ?? "") ? before : whole,
    )
    .replace(PLACEHOLDER, (whole, inner: string) => {
      const value = evaluate(inner, values);
      return value !== undefined && SAFE.test(value) ? value : whole;
    })
    .replace(/\$GITHUB_WORKSPACE\/|\$\{GITHUB_WORKSPACE\}\//g, "./");
}

/** The value of `a || b || 'c'`: the first that is not empty; undefined if it cannot be known. */
function evaluate(expression: string, values: Values): string | undefined {
  let last: string | undefined;
  for (const part of expression.split("||")) {
    last = termOf(part.trim(), values);
    if (last !== "") return last;
  }
  return last;
}

function termOf(term: string, { matrix, env, inputs }: Values): string | undefined {
  const literal = /^'([^']*)'$/.exec(term)?.[1];
  if (literal !== undefined) return literal;
  const [root = "", ...path] = term.split(".");
  if (root === "matrix") return matrix === undefined ? undefined : cell(matrix, path);
  const known = root === "env" ? env : root === "inputs" ? inputs : undefined;
  const name = path.join(".");
  if (known) return Object.hasOwn(known, name) ? known[name] : undefined;
  return term === "github.workspace" ? "." : term === "runner.os" ? "Linux" : undefined;
}

/** A row's value for a name; as on GitHub, a missing name is empty. */
function cell(row: Yaml, path: readonly string[]): string | undefined {
  let value: unknown = row;
  for (const name of path) value = isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value === undefined || value === null || value === false
    ? ""
    : isMap(value) || Array.isArray(value)
      ? undefined
      : textOf(value);
}

/** Conditions of steps that run only elsewhere, or only after a failure. */
const RARE = /failure\(\)|cancelled\(\)|refs\/tags|release|deploy|schedule|workflow_dispatch/i;

/** Whether a condition lets a step run on an ordinary change; an unknown condition does. */
export function mayHold(condition: unknown, values: Values): boolean {
  const text = textOf(condition)
    .slice(0, 1_000)
    .replace(/\$\{\{|\}\}/g, " ");
  return text.trim() === "" || text.split("||").some((all) => all.split("&&").every((term) => termHolds(term, values)));
}

function termHolds(given: string, values: Values): boolean {
  const bare = given.trim();
  const term = bare.replace(/^\(/, "").replace(/\)$/, "").trim();
  if (term === "false") return false;
  const isNegated = term.startsWith("!") || term.includes("!=");
  const [left = "", right] = term.replace(/^!\s*/, "").split(/[!=]=/);
  if (left.startsWith("matrix.") && values.matrix !== undefined) {
    const value = termOf(left.trim(), values);
    if (value === undefined) return true;
    const isTrue = right === undefined ? value !== "" : value === right.trim().replace(/^'|'$/g, "");
    return isTrue !== isNegated;
  }
  return isNegated || !(RARE.test(term) || OTHER_SYSTEM.test(term));
}

/** Variables with literal values, or values from the matrix row; the others are undefined. */
export function variablesOf(env: unknown, values: Values): Record<string, string | undefined> {
  const entries = Object.entries(mapOf(env)).slice(0, 50);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const text = value === null ? "" : resolvePlaceholders(textOf(value), values);
      return [name, SAFE.test(text) && !isMap(value) ? text : undefined];
    }),
  );
}
