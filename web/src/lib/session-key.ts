/** Storage is kept apart by port, as cookies are not: no page that another program serves on this host can read the key. */
const NAME = "io_key";

interface KeyStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}
const storage = (): KeyStorage | undefined => (globalThis as { localStorage?: KeyStorage }).localStorage;

export const keepKey = (key: string): void => storage()?.setItem(NAME, key);
export const forgetKey = (): void => storage()?.removeItem(NAME);
export const hasKey = (): boolean => typeof storage()?.getItem(NAME) === "string";

/** What proves, together with the cookie, that a request is this page's. */
export function keyHeader(): Record<string, string> {
  const key = storage()?.getItem(NAME);
  return typeof key === "string" ? { "io-key": key } : {};
}
