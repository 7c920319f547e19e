import { basename } from "node:path";
import { z } from "zod";
import { nearest } from "../../home/config.ts";
import { ExitCode, UserError } from "../../lib/errors.ts";
import { sentenceOf } from "../../lib/validation.ts";
import { type Path, type Report, valueAt } from "./file-places.ts";
import { CONDITIONS } from "./schema.ts";

/** One thing wrong with a pipeline file, and where. */
export interface Problem {
  line: number;
  /** The place in the file, such as `pipeline[2].reviews[0].agent`. */
  path: string;
  message: string;
}

/** A pipeline file that cannot be run, with everything that is wrong with it. */
export class WrongPipeline extends UserError {
  readonly problems: readonly Problem[];
  constructor(path: string, problems: readonly Problem[]) {
    super(describeProblems(path, problems), { exitCode: ExitCode.usage });
    this.problems = problems;
  }
}

export function describeProblems(path: string, problems: readonly Problem[]): string {
  const name = basename(path);
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return [
    `${path}: ${count}, nothing was started.`,
    ...problems.map((each) => `  ${name}:${each.line}: ${each.path}: ${each.message}`),
  ].join("\n");
}

/** What is needed to explain a schema issue. */
export interface Explained {
  raw: unknown;
  pipeline: z.ZodObject;
  kinds: readonly { name: string; schema: z.ZodType }[];
}

/** Explains a schema issue in a sentence. */
export function explain(issue: z.core.$ZodIssue, { raw, pipeline, kinds }: Explained, report: Report): void {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const found = show(valueAt(raw, path));
  const name = path.at(-1);
  if (issue.code === "unrecognized_keys") {
    const phase = valueAt(raw, [...path.slice(0, 2), "phase"]);
    const known =
      path.length === 0
        ? Object.keys(pipeline.shape)
        : kinds.flatMap((kind) => (kind.name === phase ? keysAt(kind.schema, path.slice(2)) : []));
    for (const key of issue.keys) report(path, `there is no such key.${hint(key, known)}`, key);
  } else if (name === "phase" && path.length === 3) {
    const names = kinds.map((kind) => kind.name);
    report(path, `${found} is no phase.${hint(String(valueAt(raw, path)), names)}`);
  } else if (name === "condition") {
    report(path, `${found} is no condition.${hint(String(valueAt(raw, path)), CONDITIONS)}`);
  } else if (issue.code === "invalid_key") {
    report(path, `${JSON.stringify(String(name))} is no name for an agent: letters, digits, dashes and underscores only`);
  } else if (valueAt(raw, path) === undefined) {
    report(path.slice(0, -1), `"${name}" is missing`);
  } else {
    report(path, `found ${found}: ${sentenceOf(issue)}`);
  }
}

function hint(typed: string, known: readonly string[]): string {
  const near = nearest(typed, known);
  return near ? ` Did you mean "${near}"?` : ` There are: ${known.join(", ")}.`;
}

/** The keys that a schema knows at a place within it. */
function keysAt(schema: unknown, [next, ...rest]: Path): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return keysAt(schema.unwrap(), next === undefined ? [] : [next, ...rest]);
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  return next === undefined ? Object.keys(schema.shape) : keysAt(schema.shape[next], rest);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
