import { X509Certificate } from "node:crypto";
import { createAccount, createUser, fromPublic, fromSeed } from "@nats-io/nkeys";
import { expect, test } from "vitest";
import { createRedactor } from "../../../src/lib/redact.ts";
import { createAuthority, fingerprintOf, isStillGood, signServer } from "../../../src/workers/cluster/certificate.ts";
import { inviteUrl, newCode, proofOf, readInviteUrl } from "../../../src/workers/cluster/invitation.ts";
import { createInvitations } from "../../../src/workers/cluster/invitations.ts";
import { authenticatorOf, createNkey, isUserKey, nkeyOf } from "../../../src/workers/jobs/nats/nkey.ts";

test("a certificate is for its names alone, from its own authority, and is made anew before it ends", () => {
  const authority = createAuthority();
  const names = ["localhost", "127.0.0.1", "::1", "fd00::12:3", "db.example"];
  const server = signServer(authority, names);
  const read = new X509Certificate(server.certificate);
  expect(read.checkIssued(new X509Certificate(authority.certificate))).toBe(true);
  expect(read.ca).toBe(false);
  expect(read.subjectAltName).toBe(
    "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:FD00:0:0:0:0:0:12:3, DNS:db.example",
  );
  expect(isStillGood(server, authority, names)).toBe(true);
  expect(isStillGood(server, authority, [...names, "other.example"])).toBe(false);
  expect(isStillGood(server, createAuthority(), names)).toBe(false);
  expect(isStillGood(server, authority, names, new Date(Date.parse(read.validTo) - 20 * 86_400_000))).toBe(false);
  expect(fingerprintOf(authority.certificate)).toMatch(/^[\w-]{43}$/);
  // After 2050, certificates use another date format.
  expect(new X509Certificate(createAuthority(new Date("2051-03-04T05:06:07Z")).certificate).validFrom).toContain("2051");
});

test("keys made and read without the server's own library are its keys, and what is mistyped or another's is none", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  for (let round = 0; round < 20; round += 1) {
    const theirs = createUser();
    const seed = new TextDecoder().decode(theirs.getSeed());
    expect(nkeyOf(seed)).toEqual({ publicKey: theirs.getPublicKey(), seed });
    expect(isUserKey(theirs.getPublicKey())).toBe(true);
    const { nkey, sig } = authenticatorOf(seed)(`nonce ${round}`) as { nkey: string; sig: string };
    expect(fromPublic(nkey).verify(bytes(`nonce ${round}`), Buffer.from(sig, "base64"))).toBe(true);
    const ours = createNkey();
    expect(fromSeed(bytes(ours.seed)).getPublicKey()).toBe(ours.publicKey);
  }
  const { publicKey, seed } = createNkey();
  const other = (text: string, at: number) => text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
  const account = createAccount();
  for (const wrong of [other(publicKey, 20), publicKey.toLowerCase(), `${publicKey} `, seed, account.getPublicKey(), ""])
    expect(isUserKey(wrong), wrong).toBe(false);
  for (const wrong of [other(seed, 20), publicKey, new TextDecoder().decode(account.getSeed()), seed.slice(1), ""])
    expect(() => nkeyOf(wrong), wrong).toThrow("no seed");
});

test("an invitation's url is read as it was written, and nothing else is taken for one", async () => {
  const { seed } = createNkey();
  const invitation = { scheme: "tls", server: "[fd00::1]:4222", seed, fingerprint: "a".repeat(43) };
  expect(readInviteUrl(inviteUrl(invitation))).toEqual(invitation);
  for (const url of ["", "https://x:1/y", `tls://host:4222/${seed}x`, `tls://ho st:1/${seed}`, `tls://host/${seed}`])
    expect(() => readInviteUrl(url)).toThrow("This is no invitation.");
  expect(newCode()).toMatch(/^[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){2}$/);
  expect(createRedactor().clean(`join ${inviteUrl(invitation)}`)).not.toContain(seed);
});

test("an invitation is good for ten minutes, once, however its code is typed, and bears four wrong codes", async () => {
  let now = 0;
  let changes = 0;
  const onChange = () => {
    changes += 1;
  };
  const invitations = createInvitations({ onChange, now: () => now });
  const take = ({ publicKey }: { publicKey: string }, code: string) =>
    invitations.take(publicKey, "text", proofOf(code, "worker", "text"));
  const used = invitations.add()!;
  expect(take(used, used.code.toLowerCase().replaceAll("-", " "))).toBe(true);
  expect(take(used, used.code)).toBe(false);
  invitations.release(used.publicKey);
  expect(take(used, used.code)).toBe(true);
  invitations.close(used.publicKey);
  expect(take(used, used.code)).toBe(false);

  const late = invitations.add()!;
  now = 600_000;
  expect(take(late, late.code)).toBe(false);
  now = 599_999;
  expect(take(late, late.code)).toBe(true);

  const guessed = invitations.add()!;
  for (let wrong = 1; wrong <= 4; wrong += 1) expect(take(guessed, "WRONG")).toBe(false);
  const before = changes;
  expect(invitations.publicKeys()).toContain(guessed.publicKey);
  invitations.settle(guessed.publicKey);
  expect(changes).toBe(before);
  expect(take(guessed, "WRONG")).toBe(false);
  expect(take(guessed, guessed.code)).toBe(false);
  invitations.settle(guessed.publicKey);
  expect(changes).toBe(before + 1);
  expect(invitations.publicKeys()).not.toContain(guessed.publicKey);
  // A proof for one role is not valid for the other role or for another text.
  const other = invitations.add()!;
  expect(invitations.take(other.publicKey, "text", proofOf(other.code, "daemon", "text"))).toBe(false);
  expect(invitations.take(other.publicKey, "another", proofOf(other.code, "worker", "text"))).toBe(false);
  invitations.clear();
});
