/** Unlike cookies, storage is separated by port, so a page that another program serves on this host cannot read the key. */
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

/** The header that proves, together with the cookie, that a request comes from this page. */
export function keyHeader(): Record<string, string> {
  const key = storage()?.getItem(NAME);
  return typeof key === "string" ? { "io-key": key } : {};
}
