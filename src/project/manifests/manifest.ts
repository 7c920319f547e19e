/** One package of a project, as its own file describes it. */
export interface PackageManifest {
  /** Relative to the project; "." for its root. */
  folder: string;
  file: string;
  kind: string;
  name: string;
  /** Whether the name comes from the file and not from the folder. */
  isNamed: boolean;
  /** What the package runs with. */
  dependencies: Set<string>;
  /** What it is only developed, tested or built with, or offers as an extra. */
  development: Set<string>;
  /** The scripts that a package manager can run, by name. */
  scripts: Map<string, string>;
  /** Set if the file declares itself the root of several packages. */
  workspace: string | undefined;
  /** The package manager the file asks for. */
  manager: string | undefined;
  /** Whether the file says that the package is never published. */
  isPrivate: boolean;
  text: string;
}

/** What a reader takes from the text of one manifest. */
export type ManifestFacts = Pick<PackageManifest, "name"> &
  Partial<Pick<PackageManifest, "dependencies" | "development" | "scripts" | "workspace" | "manager" | "isPrivate">>;

/** Reads a manifest's text; `name` is the name of its file. May throw: the file is then reported as broken. */
export type ManifestReader = (text: string, name: string) => ManifestFacts;

/** Whether a package names another in any way. */
export const uses = ({ dependencies, development }: PackageManifest, name: string): boolean =>
  dependencies.has(name) || development.has(name);
