import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { Config, rawConfig, SECRET_KEYS } from "../../lib/config.ts";

type Values = Record<string, unknown>;

/** Tells one state of the file from another. */
export const configHash = (path: string): string =>
  createHash("sha256")
    .update(JSON.stringify(rawConfig(path)))
    .digest("hex")
    .slice(0, 32);

/** What the file itself says, without the defaults; of secrets only that they are set. */
export const writtenConfig = (path: string): Values => hideSecrets(rawConfig(path), { also: false });

/** What every key may be, as a JSON schema. */
export const configSchema = (): Values => z.toJSONSchema(Config, { io: "input", unrepresentable: "any" }) as Values;

/** A copy in which every secret is `{set: …}`, those that are not there too. */
export const withoutSecrets = (config: object): Values => hideSecrets(config, { also: true });

function hideSecrets(config: object, { also }: { also: boolean }): Values {
  const copy = structuredClone(config) as Values;
  for (const { holder, key } of secretsIn(copy)) {
    if (!also && holder[key] === undefined) continue;
    holder[key] = { set: holder[key] !== undefined && Object.keys(Object(holder[key])).length > 0 };
  }
  return copy;
}

/** Changes in which a secret that was shown as set is what the file holds. */
export function withSecretsOf(changes: Values, path: string): Values {
  const copy = structuredClone(changes);
  const known = new Map(secretsIn(structuredClone(rawConfig(path))).map(({ name, holder, key }) => [name, holder[key]]));
  for (const { name, holder, key } of secretsIn(copy)) {
    const shown = z.strictObject({ set: z.boolean() }).safeParse(holder[key]);
    if (!shown.success) continue;
    if (known.get(name) === undefined) delete holder[key];
    else holder[key] = known.get(name);
  }
  return copy;
}

function secretsIn(config: Values): { name: string; holder: Values; key: string }[] {
  return SECRET_KEYS.flatMap((name) => {
    const [first = "", second] = name.split(".");
    const holder = second === undefined ? config : config[first];
    if (typeof holder !== "object" || holder === null) return [];
    return [{ name, holder: holder as Values, key: second ?? first }];
  });
}
