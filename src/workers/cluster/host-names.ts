import { hostname, networkInterfaces } from "node:os";

/** Every name and address by which this host can be reached; the client checks "localhost" when it is given an address. */
export function namesOfHost(also: readonly string[] = []): string[] {
  const name = hostname().toLowerCase();
  const plain = /^[a-z0-9.-]{1,253}$/.test(name) ? [name] : [];
  return [...new Set(["localhost", "127.0.0.1", "::1", ...plain, ...addresses().map(({ address }) => address), ...also])];
}

/** The address that other hosts most likely reach this one by; its own where it has no network. */
export function likelyAddress(): string {
  const outer = addresses().filter(({ internal }) => !internal);
  return (outer.find(({ family }) => family === "IPv4") ?? outer[0])?.address ?? "127.0.0.1";
}

export const isLoopback = (address: string): boolean => /^127\.|^::1$|^::ffff:127\./i.test(address);

/** Whether a server on this host can listen at it. */
export const isOwnAddress = (address: string): boolean =>
  isLoopback(address) || addresses().some((own) => own.address === address.toLowerCase());

/** Without those that mean something on one link only. */
function addresses() {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ address }) => !/^fe80:/i.test(address) && !address.includes("%"));
}
