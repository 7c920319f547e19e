import { messageOf, UserError } from "../../lib/errors.ts";
import { readJson } from "../../store/read-json.ts";
import { type ClusterAccess, connectOnce, isRefusal } from "../jobs/nats/connection.ts";
import { createNkey, isUserKey, type Nkey, nkeyOf } from "../jobs/nats/nkey.ts";
import { PROTOCOL } from "../jobs/port.ts";
import { type Invitation, isProof, proofOf } from "./invitation.ts";
import { Declined, PairAnswer, type PairRequest, Proven, REFUSED_WORDS, Refused } from "./pairing-messages.ts";
import { pairingSubject } from "./rights.ts";
import { fetchAuthority } from "./server-authority.ts";

export interface JoinDeps {
  invitation: Invitation;
  code: string;
  name: string;
  labels: string[];
  capacity: number;
  version: string;
  /** The server's authority as PEM text, if a person supplied it. */
  ca?: string;
}

export interface Joined {
  access: ClusterAccess;
  /** The daemon's public key. */
  daemon: string;
  /** The key that the owner of a foreign server must add; null if the daemon adds it. */
  keyToAdd: string | null;
}

const ANSWER_MS = 10_000;
/** How long the server may take to learn a new key. */
const LEARN_MS = 15_000;

/** Asks for admission. The worker's key is created here, and its seed never leaves this host. */
export async function joinCluster(deps: JoinDeps): Promise<Joined> {
  const { invitation, code, name, labels, capacity, version } = deps;
  const own = createNkey();
  const pairing = keyOf(invitation);
  const ca = deps.ca ?? (await authorityOf(invitation));
  const server = `${invitation.scheme}://${invitation.server}`;
  const request = { name, publicKey: own.publicKey, labels, capacity, version, protocol: PROTOCOL };
  const asker = { servers: [server], nkeySeed: pairing.seed, name: pairing.publicKey, ...(ca && { tls: { ca } }) };
  const answer = await ask(asker, pairing, request, code);
  // This address is known to work from this host.
  const servers = [...new Set([server, ...answer.servers])];
  const access: ClusterAccess = { servers, nkeySeed: own.seed, name, ...(ca && { tls: { ca } }) };
  const { daemon } = answer;
  if (!isUserKey(daemon)) throw new UserError("The daemon's answer holds no key. Make a new invitation.");
  if (!answer.managed) return { access, daemon, keyToAdd: (await isLetIn(access)) ? null : own.publicKey };
  await untilLetIn(access);
  return { access, daemon, keyToAdd: null };
}

function keyOf({ seed }: Invitation): Nkey {
  try {
    return nkeyOf(seed);
  } catch {
    throw new UserError(REFUSED_WORDS);
  }
}

async function authorityOf({ scheme, server, fingerprint }: Invitation): Promise<string | undefined> {
  if (fingerprint === undefined) return undefined;
  const { hostname, port } = new URL(`${scheme === "tls" ? "https" : "http"}://${server}`);
  const found = await fetchAuthority(hostname.replace(/^\[|\]$/g, ""), Number(port), fingerprint).catch((error: unknown) => {
    throw unreachable(server, error);
  });
  if (found === undefined)
    throw new UserError(
      `The server at ${server} is not the one that the invitation is for: it shows another certificate. Somebody may stand in between, or the server was set up anew; make a new invitation there and compare.`,
    );
  return found;
}

async function ask(access: ClusterAccess, { publicKey }: Nkey, request: PairRequest, code: string): Promise<PairAnswer> {
  const connection = await connectOnce(access, ANSWER_MS).catch((error: unknown) => {
    throw isRefusal(error) ? new UserError(REFUSED_WORDS) : unreachable(access.servers.join(), error);
  });
  try {
    const text = JSON.stringify(request);
    const said = JSON.stringify({ text, proof: proofOf(code, "worker", text) });
    const message = await connection.request(pairingSubject(publicKey), said, { timeout: ANSWER_MS }).catch((error: unknown) => {
      // When the invitation ends, the server closes the connection in the middle of the question.
      if (connection.isClosed()) throw new UserError(REFUSED_WORDS);
      throw new UserError(
        `The daemon does not answer: ${messageOf(error)}. Look whether it runs (io status there), then try again.`,
      );
    });
    return answerIn(message.string(), code);
  } finally {
    await connection.close();
  }
}

function answerIn(said: string, code: string): PairAnswer {
  if (readJson(Refused, said)) throw new UserError(REFUSED_WORDS);
  const proven = readJson(Proven, said);
  if (!proven || !isProof(proven.proof, code, "daemon", proven.text))
    throw new UserError("The answer does not come from whoever made the invitation. Nothing was joined; make a new invitation.");
  const declined = readJson(Declined, proven.text);
  if (declined) throw new UserError(declined.declined);
  const answer = readJson(PairAnswer, proven.text);
  if (!answer) throw new UserError("The daemon's answer is not understood. Update IO on both hosts to the same version.");
  return answer;
}

/** Whether a foreign server already accepts the key, as one without authentication does. */
async function isLetIn(access: ClusterAccess): Promise<boolean> {
  try {
    await (await connectOnce(access, ANSWER_MS)).close();
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw unreachable(access.servers.join(), error);
  }
}

/** Waits for the server, which learns the key only after the answer was sent. */
async function untilLetIn(access: ClusterAccess): Promise<void> {
  const made = await connectOnce(access, LEARN_MS, { untilKnown: true }).catch((error: unknown) => {
    throw unreachable(access.servers.join(), error);
  });
  await made.close();
}

function unreachable(server: string, error: unknown): UserError {
  return new UserError(
    `The server at ${server} cannot be reached: ${messageOf(error)}. Look whether it runs (io cluster status there), and whether this host may reach its port.`,
  );
}
