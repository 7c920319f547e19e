import { createNkey, type Nkey } from "../jobs/nats/nkey.ts";
import { isProof, newCode, proofOf } from "./invitation.ts";

const GOOD_MS = 600_000;
const MAX_WRONG = 5;
const MAX_OPEN = 50;

export interface OpenInvitation {
  /** The public key with which a worker may ask. */
  publicKey: string;
  seed: string;
  code: string;
  expiresAt: Date;
}

export interface InvitationsDeps {
  /** Called when an invitation opens or closes, so that the server's users follow. */
  onChange: () => void;
  now?: () => number;
}

/** The open invitations. They live only in memory: a restart ends them. */
export function createInvitations({ onChange, now = Date.now }: InvitationsDeps) {
  const open = new Map<string, OpenInvitation & { wrong: number; taken: boolean; timer: NodeJS.Timeout }>();

  function close(publicKey: string): void {
    clearTimeout(open.get(publicKey)?.timer);
    if (open.delete(publicKey)) onChange();
  }

  return {
    /** Undefined if too many are open. With a shared key, the earlier invitation ends. */
    add(key?: Nkey): OpenInvitation | undefined {
      if (key) close(key.publicKey);
      if (open.size >= MAX_OPEN) return undefined;
      const { publicKey, seed } = key ?? createNkey();
      const timer = setTimeout(() => close(publicKey), GOOD_MS).unref();
      const invitation = { publicKey, seed, code: newCode(), expiresAt: new Date(now() + GOOD_MS) };
      open.set(publicKey, { ...invitation, wrong: 0, taken: false, timer });
      onChange();
      return invitation;
    },
    /** Takes an invitation for the first that proves to have its code; too many wrong proofs end it. */
    take(publicKey: string, text: string, proof: string): boolean {
      const found = open.get(publicKey);
      // An unknown invitation is compared too, so that it takes as long.
      const right = isProof(proof, found?.code ?? newCode(), "worker", text);
      if (!found || found.taken || found.wrong >= MAX_WRONG || found.expiresAt.getTime() <= now()) return false;
      if (right) {
        found.taken = true;
        return true;
      }
      found.wrong += 1;
      return false;
    },
    /** Closes an invitation after too many wrong proofs. Call it after the answer was sent, which closing would cut off. */
    settle(publicKey: string): void {
      if ((open.get(publicKey)?.wrong ?? 0) >= MAX_WRONG) close(publicKey);
    },
    /** Proves to the worker that the answer comes from the creator of the code. */
    prove: (publicKey: string, text: string): string => proofOf(open.get(publicKey)?.code ?? newCode(), "daemon", text),
    /** Reopens an invitation that was taken but could not be used. */
    release(publicKey: string): void {
      const found = open.get(publicKey);
      if (found) found.taken = false;
    },
    /** Closes an invitation that was used or withdrawn. */
    close,
    publicKeys: (): string[] => [...open.keys()],
    clear(): void {
      for (const { timer } of open.values()) clearTimeout(timer);
      open.clear();
    },
  };
}
export type Invitations = ReturnType<typeof createInvitations>;
