import { posix } from "node:path";
import type { PackageManifest } from "./manifests/manifest.ts";
import { entriesOf, sectionsOf } from "./manifests/toml.ts";

/** Files outside the packages that no check depends on. */
const PROSE = /\.(?:md|mdx|rst|adoc)$|(?:^|\/)(?:LICEN[CS]E|COPYING|AUTHORS|CODEOWNERS)$/i;
/** The source folders of a crate at the root of a Cargo workspace. */
const OF_ROOT_CRATE = /^(?:src|tests|benches|examples)\//;

/**
 * The folders of the packages that a change concerns: those with a changed file, and their dependants. Undefined if the change
 * concerns the whole project: it touches what belongs to no package, such as a lock file, or prose alone.
 */
export function affectedBy(changed: readonly string[], manifests: readonly PackageManifest[]): ReadonlySet<string> | undefined {
  const folders = new Set(manifests.map(({ folder }) => folder));
  const rootIsCrate = manifests.some(({ kind, folder, isNamed }) => kind === "cargo" && folder === "." && isNamed);
  const affected = new Set<string>();
  for (const file of changed) {
    const folder = packageOf(file, folders);
    if (folder !== "." || (rootIsCrate && OF_ROOT_CRATE.test(file))) affected.add(folder);
    else if (!PROSE.test(file)) return undefined;
  }
  if (affected.size === 0) return undefined;
  const dependants = dependantsOf(manifests, folders);
  // A Set's iteration includes entries that are added meanwhile.
  for (const folder of affected) for (const each of dependants.get(folder) ?? []) affected.add(each);
  return affected;
}

/** The innermost package of a file; "." for the project itself. */
function packageOf(file: string, folders: ReadonlySet<string>): string {
  let folder = posix.dirname(file);
  while (folder !== "." && !folders.has(folder)) folder = posix.dirname(folder);
  return folder;
}

/** The packages that use each package, by folder. */
function dependantsOf(manifests: readonly PackageManifest[], folders: ReadonlySet<string>): Map<string, Set<string>> {
  const byName = new Map<string, string>();
  for (const { kind, name, folder } of manifests) if (name !== "") byName.set(keyOf(kind, name), folder);
  for (const [alias, folder] of manifests.flatMap(cargoAliases)) byName.set(keyOf("cargo", alias), folder);
  const dependants = new Map<string, Set<string>>();
  for (const manifest of manifests) {
    const { kind, folder, dependencies, development } = manifest;
    const named = [...dependencies, ...development].flatMap((name) => byName.get(keyOf(kind, name)) ?? []);
    for (const used of [...named, ...pathsIn(manifest)]) {
      if (used === folder || !folders.has(used)) continue;
      const known = dependants.get(used);
      if (known) known.add(folder);
      else dependants.set(used, new Set([folder]));
    }
  }
  return dependants;
}

/** Python treats names with other separators as equal. */
const keyOf = (kind: string, name: string) =>
  `${kind}\0${kind === "python" ? name.toLowerCase().replaceAll(/[_.]/g, "-") : name}`;

/** The names by which members of a Cargo workspace may refer to a package's path. */
function cargoAliases({ kind, folder, text }: PackageManifest): [alias: string, folder: string][] {
  if (kind !== "cargo") return [];
  return entriesOf(sectionsOf(text).get("workspace.dependencies")).flatMap(([name, value]) => {
    const path = PATH.exec(value)?.[1];
    return path === undefined ? [] : [[name, posix.join(folder, path)]];
  });
}

const PATH = /\bpath ?= ?["']([^"']{1,200})["']/;
const PATHS: Readonly<Record<string, RegExp>> = {
  npm: /"(?:file|link|portal|workspace):(\.[^"]{1,200})"/g,
  go: /=> (\.{1,2}\/[^\s]{1,200})/g,
  python: /\bpath ?= ?["']([^"']{1,200})["']/g,
  cargo: /\bpath ?= ?["']([^"']{1,200})["']/g,
};
const GRADLE_PROJECT = /\bproject\( ?(?:path ?[:=] ?)?["']:([\w:.-]{1,200})["']/g;
const GRADLE_ACCESSOR = /\bprojects\.([\w.]{1,200})/g;

/** The folders of the packages that a manifest names by path. */
function pathsIn({ kind, folder, text }: PackageManifest): string[] {
  if (kind === "gradle") {
    const named = [...text.matchAll(GRADLE_PROJECT)].map((match) => match[1]!.replaceAll(":", "/"));
    const accessors = [...text.matchAll(GRADLE_ACCESSOR)].map((match) => match[1]!.replaceAll(".", "/"));
    return [
      ...named,
      ...accessors,
      ...accessors.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)),
    ];
  }
  const pattern = PATHS[kind];
  if (!pattern) return [];
  const own = kind === "cargo" ? withoutWorkspace(text) : text;
  return [...own.matchAll(pattern)].map((match) => posix.join(folder, match[1]!).replace(/\/$/, ""));
}

/** What the root of a Cargo workspace lists for its members is not what the root itself uses. */
function withoutWorkspace(text: string): string {
  return [...sectionsOf(text)].flatMap(([name, body]) => (name.startsWith("workspace") ? [] : [body])).join("\n");
}
