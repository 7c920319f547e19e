import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { conflict } from "../lib/errors.ts";
import { type ClientToken, type MadeClientToken, type NewClientToken, TokenScope } from "../protocol/tokens.ts";
import { isTemporary } from "./faults.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";
import { createState } from "./state.ts";

/** The precision of a token's last use. */
const USE_MS = 60_000;

interface Row {
  name: string;
  scopes: string;
  createdAt: string;
  lastUsedAt: string | null;
}

/** Tokens for single programs; only their hashes are stored. */
export function createClientTokens(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const state = createState(store);
  const columns = "name, scopes, created_at AS createdAt, last_used_at AS lastUsedAt";
  const insert = db.prepare("INSERT INTO client_tokens (name, hash, scopes, created_at) VALUES (?, ?, ?, ?)");
  const all = db.prepare(`SELECT ${columns} FROM client_tokens ORDER BY name`);
  const byName = db.prepare(`SELECT ${columns} FROM client_tokens WHERE name = ?`);
  const byHash = db.prepare(`SELECT ${columns} FROM client_tokens WHERE hash = ?`);
  const used = db.prepare("UPDATE client_tokens SET last_used_at = ? WHERE name = ?");
  const remove = db.prepare("DELETE FROM client_tokens WHERE name = ?");
  const shown = ({ name, scopes, createdAt, lastUsedAt }: Row): ClientToken => ({
    ...{ name, createdAt, lastUsedAt },
    for: readJson(z.array(TokenScope), scopes) ?? [],
  });
  const find = (name: string): ClientToken | undefined => {
    const row = byName.get(name) as Row | undefined;
    return row && shown(row);
  };

  function noteUse({ name, lastUsedAt }: ClientToken): void {
    const at = now();
    if (lastUsedAt !== null && at.getTime() - Date.parse(lastUsedAt) < USE_MS) return;
    try {
      store.soft(() => used.run(at.toISOString(), name));
    } catch (error) {
      // A token stays valid even if the database cannot be written.
      if (!isTemporary(error)) throw error;
    }
  }

  return {
    /** Records where a token was last used without having access, to explain a refusal. */
    noteAstray(token: string, path: string): void {
      const row = byHash.get(hashOf(token)) as Row | undefined;
      if (!row) return;
      const before = readAstray(state.get(ASTRAY_KEY));
      const last = before[row.name];
      const at = now();
      if (last && at.getTime() - Date.parse(last.at) < USE_MS) return;
      const astray = { ...before, [row.name]: { path: path.slice(0, 200), at: at.toISOString() } };
      try {
        store.soft(() => state.set(ASTRAY_KEY, JSON.stringify(astray)));
      } catch (error) {
        if (!isTemporary(error)) throw error;
      }
    },
    list: (): ClientToken[] => (all.all() as unknown as Row[]).map(shown),
    /** Returns the token itself, which is shown only once. */
    make({ name, for: scopes }: NewClientToken): MadeClientToken {
      const token = `io_${randomBytes(32).toString("base64url")}`;
      const wanted = TokenScope.options.filter((scope) => scopes.includes(scope));
      store.transaction(() => {
        if (find(name)) throw conflict(`There is a token called ${name} already. Revoke it first: io token revoke ${name}.`);
        insert.run(name, hashOf(token), JSON.stringify(wanted), now().toISOString());
      });
      return { name, for: wanted, token };
    },
    /** Returns the revoked token; undefined if there is none with this name. */
    revoke: (name: string): ClientToken | undefined =>
      store.transaction(() => {
        const known = find(name);
        if (!known) return undefined;
        remove.run(name);
        const { [name]: _gone, ...others } = readAstray(state.get(ASTRAY_KEY));
        state.set(ASTRAY_KEY, JSON.stringify(others));
        return known;
      }),
    /** What a token grants; undefined if it is unknown or revoked. */
    scopesOf(token: string): readonly TokenScope[] | undefined {
      const row = byHash.get(hashOf(token)) as Row | undefined;
      if (!row) return undefined;
      const known = shown(row);
      noteUse(known);
      return known.for;
    },
  };
}
/** The value stored under `ASTRAY_KEY`, by token name. */
export const readAstray = (text: string | undefined): Astray => readJson(Astray, text ?? "{}") ?? {};
export const ASTRAY_KEY = "tokens.astray";
const Astray = z.record(z.string(), z.object({ path: z.string(), at: z.string() }));
type Astray = z.infer<typeof Astray>;

export type ClientTokens = ReturnType<typeof createClientTokens>;

const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");
