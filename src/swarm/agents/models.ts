import type { Engine, Serving } from "../../engine/port.ts";
import { nearest } from "../../home/config.ts";
import { ExitCode, UserError } from "../../lib/errors.ts";
import { named as asName, quoted } from "../../lib/quoted.ts";
import type { RunModel } from "../../protocol/runs.ts";
import type { NamedModel } from "../pipeline/named-models.ts";

/** How many of the available models an error lists. */
const MOST_NAMED = 6;

interface Missing {
  name: string;
  where: string;
}

/** A person named models that do not exist. */
export class MissingModels extends UserError {
  readonly missing: readonly Missing[];
  readonly available: readonly string[];
  constructor(missing: readonly Missing[], available: readonly string[], howToAllow = "--stand-ins") {
    super(describe(missing, available, howToAllow), { exitCode: ExitCode.usage });
    this.missing = missing;
    this.available = available;
  }
}

/** Rewords the refusal for callers that allow substitute models by something other than `--stand-ins`. */
export function rewordMissingModels(howToAllow: string | undefined) {
  return (error: unknown): never => {
    throw error instanceof MissingModels ? new MissingModels(error.missing, error.available, howToAllow) : error;
  };
}

/**
 * Finds the model that serves each name. Unless substitutes are allowed, it throws one error for all missing models that a person
 * named.
 */
export async function resolveModels(
  engine: Pick<Engine, "serving" | "models">,
  named: readonly NamedModel[],
  standIns: boolean,
): Promise<RunModel[]> {
  const names = [...new Map(named.map(({ name, anyOf = [name] }) => [name, anyOf]))];
  const models = await Promise.all(
    names.map(async ([name, anyOf]): Promise<RunModel> => ({ name, ...(await firstAvailable(engine, anyOf)) })),
  );
  const isMissing = (name: string) => models.some((model) => model.name === name && model.standsIn && !model.rehearsal);
  const missing = named.flatMap(({ name, where }) => (where !== undefined && isMissing(name) ? [{ name, where }] : []));
  if (missing.length > 0 && !standIns)
    throw new MissingModels(
      missing,
      (await engine.models()).map(({ id }) => id),
    );
  return models.filter(({ name }) => named.some((each) => each.name === name && each.used));
}

/** The first of some models that exists, else the substitute for the first. */
async function firstAvailable(engine: Pick<Engine, "serving">, names: readonly string[]): Promise<Serving> {
  const serving = await Promise.all(names.map((name) => engine.serving(name)));
  return serving.find(({ standsIn }) => !standsIn) ?? serving[0]!;
}

/** Returns the model that serves a name. */
export function servingAmong(models: readonly RunModel[]): (name: string) => RunModel {
  return (name) => models.find((each) => each.name === name) ?? { name, model: name, standsIn: false };
}

function describe(missing: readonly Missing[], available: readonly string[], howToAllow: string): string {
  const count = missing.length === 1 ? "a model that was named is" : `${missing.length} models that were named are`;
  return [
    `${count} not there, nothing was started.`,
    ...missing.map(
      ({ name, where }) =>
        `  ${where}: there is no model ${quoted(name)}; there ${listOf(name, available)}. Name one of them there, or let another stand in with ${howToAllow}.`,
    ),
  ].join("\n");
}

function listOf(name: string, available: readonly string[]): string {
  const shown = nearestFirst(name, available).slice(0, MOST_NAMED);
  const more = available.length - shown.length;
  return `${available.length === 1 ? "is" : "are"} ${shown.map((id) => asName(id)).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** A likely typo first, then the names that share most words and numbers with it. */
function nearestFirst(name: string, available: readonly string[]): string[] {
  const typo = nearest(name, available);
  const words = wordsOf(name);
  const likeness = (id: string) =>
    id === typo ? Number.POSITIVE_INFINITY : wordsOf(id).filter((word) => words.includes(word)).length;
  return [...available].sort((a, b) => likeness(b) - likeness(a));
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().match(/[a-z]+|\d+/g) ?? [];
}
