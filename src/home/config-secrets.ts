import { SECRET_KEYS } from "./config.ts";

type Values = Record<string, unknown>;

/** A copy in which every secret, set or not, is `{set: …}`. */
export const withoutSecrets = (config: object): Values => hideSecrets(config, { also: true });

/** The same; `also` says whether unset secrets are included. */
export function hideSecrets(config: object, { also }: { also: boolean }): Values {
  const copy = structuredClone(config) as Values;
  for (const { holder, key } of secretsIn(copy)) {
    if (!also && holder[key] === undefined) continue;
    holder[key] = { set: holder[key] !== undefined && Object.keys(Object(holder[key])).length > 0 };
  }
  return copy;
}

/** The path of each secret in a config. */
export function secretsIn(config: Values): { name: string; holder: Values; key: string }[] {
  return SECRET_KEYS.flatMap((name) => {
    const parts = name.split(".");
    const key = parts.at(-1)!;
    let holders: { path: string[]; values: Values }[] = [{ path: [], values: config }];
    for (const part of parts.slice(0, -1)) {
      holders = holders.flatMap(({ path, values }) => {
        const names = part === "*" ? Object.keys(values) : [part];
        return names.flatMap((each) => {
          const inner = values[each];
          return typeof inner === "object" && inner !== null ? [{ path: [...path, each], values: inner as Values }] : [];
        });
      });
    }
    return holders.map(({ path, values }) => ({ name: JSON.stringify([...path, key]), holder: values, key }));
  });
}
