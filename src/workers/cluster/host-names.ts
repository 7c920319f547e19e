import { hostname, networkInterfaces } from "node:os";

/** Every name and address of this host. NATS clients check for "localhost" when they are given an address. */
export function namesOfHost(also: readonly string[] = []): string[] {
  const name = hostname().toLowerCase();
  const plain = /^[a-z0-9.-]{1,253}$/.test(name) ? [name] : [];
  return [...new Set(["localhost", "127.0.0.1", "::1", ...plain, ...addresses().map(({ address }) => address), ...also])];
}

/** The address that other hosts most likely use for this one; loopback without a network. */
export function likelyAddress(): string {
  const outer = addresses().filter(({ internal }) => !internal);
  return (outer.find(({ family }) => family === "IPv4") ?? outer[0])?.address ?? "127.0.0.1";
}

export const isLoopback = (address: string): boolean => /^127\.|^::1$|^::ffff:127\./i.test(address);

/** Whether a server on this host can listen on the address. */
export const isOwnAddress = (address: string): boolean =>
  isLoopback(address) || addresses().some((own) => own.address === address.toLowerCase());

/** Omits link-local addresses. */
function addresses() {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ address }) => !/^fe80:/i.test(address) && !address.includes("%"));
}
