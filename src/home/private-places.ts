import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { realOf } from "../lib/real-path.ts";

/** Where programs keep keys, logins and passwords, relative to the home. Files that builds read, such as ~/.npmrc, are not here. */
const IN_HOME = [
  ".ssh",
  ".gnupg/private-keys-v1.d",
  ".gnupg/secring.gpg",
  ".password-store",
  ".aws",
  ".azure",
  ".config/gcloud",
  ".config/gh",
  ".config/glab-cli",
  ".config/op",
  ".kube",
  ".docker/config.json",
  ".netrc",
  ".git-credentials",
  ".config/git/credentials",
  ".pypirc",
  ".local/share/keyrings",
  ".local/share/kwalletd",
  ".mozilla",
  ".config/google-chrome",
  ".config/chromium",
  "Library/Keychains",
];

export const privatePlaces = (home: string): string[] => IN_HOME.map((name) => join(home, name));

/** The private paths as written, and what they or their entries link to. */
export function privatePlacesAndTargets(home: string): string[] {
  const there = privatePlaces(home).filter((path) => existsSync(path));
  return [...new Set([...privatePlaces(home), ...there.map((path) => realOf(path)), ...there.flatMap(linkTargets)])];
}

function linkTargets(folder: string): string[] {
  try {
    if (!lstatSync(realOf(folder)).isDirectory()) return [];
    const links = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isSymbolicLink());
    return links.map(({ name }) => realOf(join(folder, name)));
  } catch {
    // Missing or inaccessible.
    return [];
  }
}
