import { randomBytes } from "node:crypto";
import { chmodSync, readFileSync, statSync } from "node:fs";
import { writeFileAtomic } from "../lib/atomic.ts";
import { codeOf } from "../lib/errors.ts";

/** The API token, created at the first start and readable only by its owner. */
export function ensureToken(path: string): string {
  const existing = readToken(path);
  if (existing) {
    if ((statSync(path).mode & 0o777) !== 0o600) chmodSync(path, 0o600);
    return existing;
  }
  const token = randomBytes(32).toString("base64url");
  writeFileAtomic(path, `${token}\n`, 0o600);
  return token;
}

export function readToken(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
