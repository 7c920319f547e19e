import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { Config, rawConfig, SECRET_KEYS } from "../../home/config.ts";
import { hideSecrets, secretsIn } from "../../home/config-secrets.ts";

type Values = Record<string, unknown>;

/** A hash of the file's values, to detect changes. */
export const configHash = (path: string): string =>
  createHash("sha256")
    .update(JSON.stringify(rawConfig(path)))
    .digest("hex")
    .slice(0, 32);

/** The values in the file itself, without defaults; of secrets only whether they are set. */
export const writtenConfig = (path: string): Values => hideSecrets(rawConfig(path), { also: false });

/** The JSON schema of the configuration. A secret is `writeOnly`. */
export function configSchema(): Values {
  const schema = z.toJSONSchema(Config, { io: "input", unrepresentable: "any" }) as Values;
  for (const { holder, key } of secretSchemas(schema)) holder[key] = { ...(holder[key] as Values), writeOnly: true };
  return schema;
}

/** Where the schema of each secret stands. */
export const secretSchemas = (schema: Values): { holder: Values; key: string }[] =>
  SECRET_KEYS.map((name) => {
    const parts = name.split(".");
    const key = parts.pop()!;
    const inner = (of: Values, part: string) =>
      (part === "*" ? of.additionalProperties : (of.properties as Values)[part]) as Values;
    return { holder: parts.reduce(inner, schema).properties as Values, key };
  });

/** Replaces secrets that the page shows as "set" with their values in the file. */
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
