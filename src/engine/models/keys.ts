import { PRESETS, presetAt, presetOfKey } from "./presets.ts";

/** An API key, where it was set and which provider it is for. */
export interface KeyDeps {
  /** The value; undefined if none was set. */
  key: string | undefined;
  /** Where it was read: the name of a variable or setting. */
  setting: string;
  /** Returns the advice how to use this variable for the key. */
  toName: (variable: string) => string;
  baseUrl: string;
  /** The setting that the address comes from. */
  address: string;
  type: string;
  env: NodeJS.ProcessEnv;
}

/** Whether a text is the name of a variable rather than a key. */
export function isVariable(text: string): boolean {
  return /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(text);
}

/** Whether a text that should name a variable is itself a key. */
export function isKey(text: string): boolean {
  return !/^[A-Za-z_][A-Za-z0-9_]*$/.test(text) || presetOfKey(text) !== undefined || text.length > 64;
}

/** Variables that contain a provider's key but are not referenced, those of this address first. */
export function idleVariables(env: NodeJS.ProcessEnv, baseUrl?: string): string[] {
  const own = baseUrl === undefined ? undefined : presetAt(baseUrl);
  const others = PRESETS.filter(({ name }) => name !== own?.name && name !== "github-models");
  return [...(own ? [own] : []), ...others].flatMap(({ variables }) => variables.filter((name) => env[name]));
}

/** What to do about a rejected key, judging by the key and where it was set. */
export function keyAdvice({ key, setting, toName, baseUrl, address, type, env }: KeyDeps): string {
  if (key === undefined) {
    const [idle] = idleVariables(env, baseUrl);
    return idle
      ? `${idle} is set, but nothing refers to it: ${toName(idle)}.`
      : `No key is set: ${toName("the variable that holds it")}.`;
  }
  const quoted = /^["'].*["']$/.test(key);
  if (quoted) return `The key (${setting}) stands between quotation marks that are part of it: take them away.`;
  const named = /^\$\{?(\w+)\}?$/.exec(key)?.[1] ?? (isVariable(key) ? key : undefined);
  if (named !== undefined) return `The key (${setting}) looks like the name of a variable and not like a key: ${toName(named)}.`;
  const house = presetOfKey(key);
  const here = presetAt(baseUrl) ?? PRESETS.find((each) => each.type === type && each.type !== "openai");
  if (house && house.name !== here?.name)
    return `The key (${setting}) looks like one of ${house.title}'s, but the address (${address}) is ${here ? `${here.title}'s` : new URL(baseUrl).host}: one of the two is in the wrong place.`;
  return `Check the key (${setting}): it may be mistyped, expired, or of another account.`;
}
