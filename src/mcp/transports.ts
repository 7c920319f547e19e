import { tmpdir } from "node:os";
import type { Transport } from "@modelcontextprotocol/client";
import { UserError } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import type { Wrap } from "../process/sandbox.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { type Entry, fillIn, type Target } from "./entries.ts";
import type { Logins } from "./oauth.ts";

export interface TransportDeps {
  /** The data folder, which servers must not use as their working folder. */
  home: string;
  env: NodeJS.ProcessEnv;
  wrap: Wrap;
  /** Marks the servers of this home among all processes. */
  mark: string;
  /** Redacts a secret from then on. */
  hide: (secret: string) => void;
  logins: Pick<Logins, "providerOf">;
}

/** Opens the transport to a server: a program in its own process group, or an address. */
export function createTransports({ home, env, wrap, mark, hide, logins }: TransportDeps) {
  async function program(entry: Entry, { command = "", args, env: given, cwd }: Target): Promise<() => Transport> {
    const folder = cwd ?? entry.project ?? ownFolder(env, home);
    if (!isFolder(folder)) throw new UserError(`The folder ${folder} is not there.`);
    const argv = await wrap([command, ...args], folder, { outside: true });
    const { StdioTransport } = await import("./stdio.ts");
    const { PATH, HOME, LANG } = env;
    const [name = "", value] = mark.split("=");
    return () => new StdioTransport({ argv, cwd: folder, env: { PATH, HOME, LANG, ...given, [name]: value } });
  }

  async function address(entry: Entry, { url = "", headers }: Target): Promise<() => Transport> {
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
      throw new UserError(`${url.slice(0, 100)} is no address that begins with http or https.`);
    const { SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    return () => {
      const authProvider = logins.providerOf(entry);
      const options = { requestInit: { headers }, fetch: boundedFetch, ...(authProvider && { authProvider }) };
      return entry.config?.type === "sse"
        ? new SSEClientTransport(new URL(url), options)
        : new StreamableHTTPClientTransport(new URL(url), options);
    };
  }

  return async (entry: Entry): Promise<() => Transport> => {
    const target = fillIn(entry, env);
    for (const secret of secretsOf(entry, target)) hide(secret);
    return target.command === undefined ? address(entry, target) : program(entry, target);
  };
}

/** The user's home, unless it lies in the data folder. */
function ownFolder({ HOME }: NodeJS.ProcessEnv, home: string): string {
  return HOME && isFolder(HOME) && !isWithin(realOf(home), realOf(HOME)) ? HOME : tmpdir();
}

/** A path, an address without a login, a number or plain words: nothing to redact. */
const HARMLESS = /^(?:[~.]{0,2}\/[^\s]*|https?:\/\/[^@\s]*|[\d.:]+|[A-Za-z]+(?:[ ,_-][A-Za-z]+)*)$/;
const HARMLESS_HEADER = /^(?:accept|content-type|user-agent)/i;
const SECRET_NAME = /token|secret|passw|key|credential|auth|cookie/i;

/** The values to redact: of variables and headers that look like secrets, and those filled in from variables. */
function secretsOf({ config }: Entry, target: Target): string[] {
  const isSecret = (name: string, value: string) => SECRET_NAME.test(name) || !HARMLESS.test(value);
  const given = Object.entries(target.env).filter(([name, value]) => isSecret(name, value));
  const sent = Object.entries(target.headers).filter(([name]) => !HARMLESS_HEADER.test(name));
  const values = [...given, ...sent].flatMap(([, value]) => [value, value.replace(/^\S+ (?=\S{8,}$)/, "")]);
  // Arguments that contained a variable.
  const filled = target.args.filter((arg, index) => arg !== config?.args[index] && !HARMLESS.test(arg));
  return [...values, ...filled];
}
