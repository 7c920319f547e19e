import { z } from "zod";
import { messageOf } from "../../lib/errors.ts";
import { readDeno, readNpm, readNx } from "./javascript.ts";
import { readGradle, readGradleSettings, readMaven } from "./jvm.ts";
import type { ManifestFacts, ManifestReader, PackageManifest } from "./manifest.ts";
import { readBazel, readCargo, readCmake, readComposer, readDotnet, readGo, readMix, readPubspec, readSwift } from "./others.ts";
import { readPipfile, readPyproject, readRequirements, readSetupCfg, readSetupPy } from "./python.ts";
import { readGemfile, readGemspec } from "./ruby.ts";

const KINDS: readonly [pattern: RegExp, kind: string, read: ManifestReader][] = [
  [/^package\.json$/, "npm", readNpm],
  [/^deno\.jsonc?$/, "deno", readDeno],
  [/^project\.json$/, "nx", readNx],
  [/^Cargo\.toml$/, "cargo", readCargo],
  [/^go\.mod$/, "go", readGo],
  [/^pyproject\.toml$/, "python", readPyproject],
  [/^requirements(?:[-_.][\w.-]*)?\.txt$/, "python", readRequirements],
  [/^setup\.py$/, "python", readSetupPy],
  [/^setup\.cfg$/, "python", readSetupCfg],
  [/^Pipfile$/, "python", readPipfile],
  [/^pom\.xml$/, "maven", readMaven],
  [/^build\.gradle(?:\.kts)?$/, "gradle", readGradle],
  [/^settings\.gradle(?:\.kts)?$/, "gradle", readGradleSettings],
  [/^build\.sbt$/, "sbt", readGradle],
  [/\.(?:cs|fs|vb)proj$/, "dotnet", readDotnet],
  [/\.slnx?$/, "dotnet", () => ({ name: "", workspace: ".NET solution" })],
  [/^Gemfile$/, "ruby", readGemfile],
  [/^.+\.gemspec$/, "ruby", readGemspec],
  [/^composer\.json$/, "php", readComposer],
  [/^mix\.exs$/, "elixir", readMix],
  [/^pubspec\.yaml$/, "dart", readPubspec],
  [/^CMakeLists\.txt$/, "cmake", readCmake],
  [/^(?:MODULE\.bazel|WORKSPACE(?:\.bazel)?)$/, "bazel", readBazel],
  [/^Package\.swift$/, "swift", readSwift],
];
/** Generated, copied from elsewhere, or only read by tests. */
const ELSEWHERE =
  /(?:^|\/)(?:node_modules|bower_components|vendor|vendored|_vendor|third_?party|3rdparty|(?:\w+-)?fixtures?|__fixtures__|__mocks__|__snapshots__|snapshots|testdata|test[-_]data|test-?cases|templates?|dist|generated|__generated__|\.yarn|\.next|\.output)\//;
/** Folders of tests hold test data; only .NET keeps its test projects there. */
const TESTED_WITH = /(?:^|\/)(?:tests?|__tests__|specs?)\/[^/]+\//;
const TEST_PROJECT = /\.(?:cs|fs|vb)proj$/;
const BASENAMES =
  /(?:^|\/)(?:package\.json|project\.json|deno\.jsonc?|Cargo\.toml|go\.mod|pyproject\.toml|requirements[^/]*\.txt|requirements\/[^/]+\.txt|setup\.py|setup\.cfg|Pipfile|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|build\.sbt|[^/]+\.(?:(?:cs|fs|vb)proj|slnx?)|Gemfile|[^/]+\.gemspec|composer\.json|mix\.exs|pubspec\.yaml|Package\.swift)$|^(?:MODULE\.bazel|WORKSPACE(?:\.bazel)?)$|^(?:[^/]+\/)?CMakeLists\.txt$/;

/** Kinds whose files are parsed as a whole; the others are scanned line by line. */
const STRUCTURED = new Set(["npm", "nx", "deno", "php", "dart"]);
const MAX_STRUCTURED = 250_000;

export function isManifest(file: string): boolean {
  return BASENAMES.test(file) && !ELSEWHERE.test(file) && (!TESTED_WITH.test(file) || TEST_PROJECT.test(file));
}

/** Reads one manifest. A broken one is still a package, without what could not be read. */
export function readManifest(file: string, text: string): { manifest: PackageManifest; problem?: string } | undefined {
  const { folder, name } = placeOf(file);
  const found = KINDS.find(([pattern]) => pattern.test(name));
  if (!found) return undefined;
  const [, kind, read] = found;
  const make = (facts: ManifestFacts): PackageManifest => ({
    folder,
    file,
    kind,
    text,
    dependencies: facts.dependencies ?? new Set(),
    development: facts.development ?? new Set(),
    scripts: facts.scripts ?? new Map(),
    workspace: facts.workspace,
    manager: facts.manager,
    isPrivate: facts.isPrivate ?? false,
    isNamed: facts.name !== "",
    name: facts.name.slice(0, 200) || (folder === "." ? "" : folder.slice(folder.lastIndexOf("/") + 1)),
  });
  try {
    if (STRUCTURED.has(kind) && text.length > MAX_STRUCTURED)
      return { manifest: make({ name: "" }), problem: `is longer than ${MAX_STRUCTURED} letters` };
    return { manifest: make(read(STRUCTURED.has(kind) ? text : withoutBlanks(text), name)) };
  } catch (error) {
    const message = error instanceof z.ZodError ? "is not in the form such a file has" : messageOf(error).split("\n")[0]!;
    return { manifest: make({ name: "" }), problem: message.slice(0, 300) };
  }
}

/** The folder of the package and the file's name; requirements/dev.txt is the requirements-dev.txt of the folder above. */
function placeOf(file: string): { folder: string; name: string } {
  const parts = file.split("/");
  const last = parts.pop()!;
  const isListed = parts.at(-1) === "requirements" && last.endsWith(".txt");
  if (isListed) parts.pop();
  return { folder: parts.join("/") || ".", name: isListed ? `requirements-${last}` : last };
}

/** Removes blank lines, runs of blanks and the rest of endless lines, which could hang a search. */
function withoutBlanks(text: string): string {
  return text
    .slice(0, 100_000)
    .split(/\r?\n/)
    .map((line) =>
      line
        .slice(0, 500)
        .replace(/[ \t]+/g, " ")
        .trimEnd(),
    )
    .filter((line) => line !== "")
    .join("\n");
}
