import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Networks that a naive classification would take for public. */
const ALSO_PRIVATE = ["168.63.129.16/32", "64:ff9b:1::/48", "::/96", "fec0::/10", "2001::/23", "3fff::/20", "5f00::/16"].map(
  (cidr) => ipaddr.parseCIDR(cidr),
);

/** Whether an address is on the public internet: not this machine, not a private network, not a tunnel to either. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return parsed.range() === "unicast" && !ALSO_PRIVATE.some((network) => within(parsed, network));
}

/** Whether the user's allow list contains this host or address. An entry is a host, `*.domain`, an address or a network. */
export function isAllowed(entries: readonly string[], host: string, address: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  return entries.some((entry) => {
    const wanted = entry
      .trim()
      .toLowerCase()
      .replace(/^\[(.*)\]$/, "$1");
    const network = networkOf(wanted);
    if (network) return ipaddr.isValid(address) && within(ipaddr.process(address), network);
    return wanted.startsWith("*.") ? name.endsWith(wanted.slice(1)) : name === wanted;
  });
}

function networkOf(entry: string): [Address, number] | undefined {
  if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry);
  if (!ipaddr.IPv4.isValidFourPartDecimal(entry) && !ipaddr.IPv6.isValid(entry)) return undefined;
  const address = ipaddr.process(entry);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

function within(address: Address, [network, bits]: [Address, number]): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}
