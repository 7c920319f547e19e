import type { ProjectCommand } from "../../protocol/analysis.ts";
import { frameworksOf } from "../frameworks.ts";
import type { PackageManifest } from "../manifests/manifest.ts";

export type Purpose = ProjectCommand["purpose"];

/** What the search for commands may look at. */
export interface ProjectView {
  manifests: readonly PackageManifest[];
  /** Including those of examples and documentation. */
  all: readonly PackageManifest[];
  /** The files whose names say that they are tests. */
  testFiles: readonly string[];
  /** The languages of the shipped code, the most used first. */
  languages: readonly string[];
  /** The text of the project's CI files. */
  ci: string;
  has(file: string): boolean;
  hasFolder(folder: string): boolean;
  /** The notable files that match. */
  named(pattern: RegExp): string[];
  read(file: string): string | undefined;
}

/** One package, and the project around it. */
export interface Scope {
  manifest: PackageManifest;
  view: ProjectView;
  /** Whether the package's own folder has a file. */
  has(name: string): boolean;
  /** The text of a file in the package's own folder, "" if there is none. */
  text(name: string): string;
  /** Whether the package has test files with such names. */
  isTested(names: RegExp): boolean;
  /** Whether the package, or one of its kind below it, names a test library. */
  hasTestLibrary(): boolean;
}

/** A command that no file of the project names is a guess: the usual check of such a project. */
export type Found = [purpose: Purpose, command: string, sureness?: "guess"];
export type CommandFinder = (scope: Scope) => Found[];

export function scopeOf(manifest: PackageManifest, view: ProjectView): Scope {
  const at = (name: string) => (manifest.folder === "." ? name : `${manifest.folder}/${name}`);
  return {
    manifest,
    view,
    has: (name) => view.has(at(name)),
    text: (name) => view.read(at(name)) ?? "",
    isTested: (names) => view.testFiles.some((file) => isWithin(file, manifest.folder) && names.test(file)),
    hasTestLibrary: () =>
      view.manifests
        .filter(({ kind, folder }) => kind === manifest.kind && isWithin(folder, manifest.folder))
        .some((one) => frameworksOf(one).some(({ area }) => area === "test")),
  };
}

export const isWithin = (path: string, folder: string): boolean =>
  folder === "." || path === folder || path.startsWith(`${folder}/`);

/** The command if the condition holds. */
export const when = (condition: boolean, purpose: Purpose, command: string): Found[] => (condition ? [[purpose, command]] : []);

/** The command, certain if the condition holds, else a guess. */
export const certainIf = (condition: boolean, purpose: Purpose, command: string): Found =>
  condition ? [purpose, command] : [purpose, command, "guess"];

/** Whether anything shows that the package has tests. */
export const showsTests = ({ isTested, hasTestLibrary }: Scope, names: RegExp): boolean => isTested(names) || hasTestLibrary();

/** The value of the first of these files found in the package's own folder or the nearest one above it. */
export function nearest<T>(folder: string, view: ProjectView, files: readonly (readonly [file: string, T])[]): T | undefined {
  const parts = folder === "." ? [] : folder.split("/");
  for (let depth = parts.length; depth >= 0; depth -= 1) {
    const found = files.find(([file]) => view.has([...parts.slice(0, depth), file].join("/")));
    if (found) return found[1];
  }
  return undefined;
}
