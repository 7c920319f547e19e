import { z } from "zod";
import { messageOf } from "../lib/errors.ts";
import { readSmallYaml } from "../lib/yaml.ts";

/** One package of a project, as its own file describes it. */
export interface PackageManifest {
  /** Relative to the project; "." for its root. */
  folder: string;
  file: string;
  kind: string;
  name: string;
  dependencies: Set<string>;
  /** The names of scripts a package manager can run, with what they run. */
  scripts: Map<string, string>;
  /** Set when the file declares itself the root of several packages. */
  workspace: string | undefined;
  /** The package manager the file asks for. */
  manager: string | undefined;
  text: string;
}

type Facts = Pick<PackageManifest, "name"> & Partial<Pick<PackageManifest, "dependencies" | "scripts" | "workspace" | "manager">>;
type Reader = (text: string) => Facts;

const KINDS: readonly [pattern: RegExp, kind: string, read: Reader][] = [
  [/^package\.json$/, "npm", readNpm],
  [/^deno\.jsonc?$/, "deno", readDeno],
  [/^Cargo\.toml$/, "cargo", readCargo],
  [/^go\.mod$/, "go", readGo],
  [/^pyproject\.toml$/, "python", readPyproject],
  [/^(?:requirements(?:[-_.][\w.-]*)?\.txt|setup\.py|setup\.cfg|Pipfile)$/, "python", readRequirements],
  [/^pom\.xml$/, "maven", readMaven],
  [/^build\.gradle(?:\.kts)?$/, "gradle", readGradle],
  [/^settings\.gradle(?:\.kts)?$/, "gradle", readGradleSettings],
  [/^build\.sbt$/, "sbt", readGradle],
  [/\.(?:cs|fs|vb)proj$/, "dotnet", readDotnet],
  [/\.slnx?$/, "dotnet", () => ({ name: "", workspace: ".NET solution" })],
  [/^(?:Gemfile|.+\.gemspec)$/, "ruby", readRuby],
  [/^composer\.json$/, "php", readComposer],
  [/^mix\.exs$/, "elixir", readMix],
  [/^pubspec\.yaml$/, "dart", readPubspec],
  [/^Package\.swift$/, "swift", readSwift],
];
const ELSEWHERE = /(?:^|\/)(?:node_modules|vendor|third_party|fixtures?|__fixtures__|testdata|test-data|templates?|\.yarn)\//;
const BASENAMES =
  /(?:^|\/)(?:package\.json|deno\.jsonc?|Cargo\.toml|go\.mod|pyproject\.toml|requirements[^/]*\.txt|setup\.py|setup\.cfg|Pipfile|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|build\.sbt|[^/]+\.(?:(?:cs|fs|vb)proj|slnx?)|Gemfile|[^/]+\.gemspec|composer\.json|mix\.exs|pubspec\.yaml|Package\.swift)$/;

/** Kinds whose files are parsed whole; the others are looked through line by line. */
const STRUCTURED = new Set(["npm", "deno", "php", "dart"]);
const MAX_STRUCTURED = 250_000;

export function isManifest(file: string): boolean {
  return BASENAMES.test(file) && !ELSEWHERE.test(file);
}

/** Reads one manifest. A broken one is still a package, without what could not be read. */
export function readManifest(file: string, text: string): { manifest: PackageManifest; problem?: string } | undefined {
  const slash = file.lastIndexOf("/");
  const folder = slash < 0 ? "." : file.slice(0, slash);
  const found = KINDS.find(([pattern]) => pattern.test(file.slice(slash + 1)));
  if (!found) return undefined;
  const [, kind, read] = found;
  const make = (facts: Facts): PackageManifest => ({
    folder,
    file,
    kind,
    text,
    dependencies: facts.dependencies ?? new Set(),
    scripts: facts.scripts ?? new Map(),
    workspace: facts.workspace,
    manager: facts.manager,
    name: facts.name.slice(0, 200) || (slash < 0 ? "" : folder.slice(folder.lastIndexOf("/") + 1)),
  });
  try {
    if (STRUCTURED.has(kind) && text.length > MAX_STRUCTURED)
      return { manifest: make({ name: "" }), problem: `is longer than ${MAX_STRUCTURED} letters` };
    return { manifest: make(read(STRUCTURED.has(kind) ? text : lean(text))) };
  } catch (error) {
    const message = error instanceof z.ZodError ? "is not in the form such a file has" : messageOf(error).split("\n")[0]!;
    return { manifest: make({ name: "" }), problem: message.slice(0, 300) };
  }
}

/** The same lines without blank ones, long blanks and endless lines, on which a search could hang. */
function lean(text: string): string {
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

const Names = z.record(z.string(), z.unknown()).catch({});
const Npm = z.looseObject({
  name: z.string().catch(""),
  scripts: Names,
  dependencies: Names,
  devDependencies: Names,
  optionalDependencies: Names,
  workspaces: z.unknown().optional(),
  packageManager: z.string().optional().catch(undefined),
});

function readNpm(text: string): Facts {
  const json = Npm.parse(JSON.parse(text));
  return {
    name: json.name,
    dependencies: new Set([json.dependencies, json.devDependencies, json.optionalDependencies].flatMap(Object.keys)),
    scripts: scriptsOf(json.scripts),
    workspace: json.workspaces ? "npm workspaces" : undefined,
    manager: /^(npm|pnpm|yarn|bun)@/.exec(json.packageManager ?? "")?.[1],
  };
}

function readDeno(text: string): Facts {
  const json = z
    .looseObject({ name: z.string().catch(""), imports: Names, tasks: Names, workspace: z.unknown().optional() })
    .parse(JSON.parse(withoutComments(text)));
  return {
    name: json.name,
    dependencies: new Set(Object.keys(json.imports)),
    scripts: scriptsOf(json.tasks),
    workspace: json.workspace ? "Deno workspace" : undefined,
  };
}

function readComposer(text: string): Facts {
  const json = z
    .looseObject({ name: z.string().catch(""), require: Names, "require-dev": Names, scripts: Names })
    .parse(JSON.parse(text));
  const dependencies = new Set([...Object.keys(json.require), ...Object.keys(json["require-dev"])]);
  return { name: json.name, dependencies, scripts: scriptsOf(json.scripts) };
}

function readPubspec(text: string): Facts {
  const read = readSmallYaml(text);
  if ("problems" in read) throw new Error(read.problems[0]!.message);
  const yaml = z.looseObject({ name: z.string().catch(""), dependencies: Names, dev_dependencies: Names }).parse(read.value);
  return { name: yaml.name, dependencies: new Set([...Object.keys(yaml.dependencies), ...Object.keys(yaml.dev_dependencies)]) };
}

function readCargo(text: string): Facts {
  const sections = tomlSections(text);
  const dependencies = new Set<string>();
  for (const [section, body] of sections) {
    const nested = /(?:^|\.)(?:dev-|build-)?dependencies(?:\.([\s\S]+))?$/.exec(section);
    if (!nested) continue;
    for (const name of nested[1] === undefined ? keysOf(body) : [nested[1]]) dependencies.add(name);
  }
  return {
    name: quotedValue(sections.get("package"), "name"),
    dependencies,
    workspace: sections.has("workspace") ? "Cargo workspace" : undefined,
  };
}

function readPyproject(text: string): Facts {
  const sections = tomlSections(text);
  const dependencies = new Set<string>();
  for (const [section, body] of sections) {
    const tool = /^tool\.([\w-]+)/.exec(section)?.[1];
    if (tool) dependencies.add(tool.toLowerCase());
    if (/^tool\.poetry\.(?:.*\.)?dependencies$/.test(section))
      for (const key of keysOf(body)) dependencies.add(key.toLowerCase());
    if (/^(?:project|project\.optional-dependencies|dependency-groups|tool\.(?:uv|hatch|pdm).*)$/.test(section)) {
      for (const name of requirementsIn(body)) dependencies.add(name);
    }
  }
  const name = quotedValue(sections.get("project"), "name") || quotedValue(sections.get("tool.poetry"), "name");
  return { name, dependencies, workspace: sections.has("tool.uv.workspace") ? "uv workspace" : undefined };
}

function readRequirements(text: string): Facts {
  const plain = [...text.matchAll(/^[ \t]*([A-Za-z][\w.-]*)[ \t]*(?:\[[\w.,\t -]*\] ?)?(?:[<>=!~;@].*|#.*)?$/gm)].map((match) =>
    match[1]!.toLowerCase(),
  );
  const name = /\bname\s*=\s*["']?([\w.-]+)/.exec(text)?.[1] ?? "";
  return { name, dependencies: new Set([...plain, ...requirementsIn(text)]) };
}

function readGo(text: string): Facts {
  const modules = [...text.matchAll(/^[ \t]*(?:require[ \t]+)?([\w-]+\.[\w.-]+\/\S+)[ \t]+v\d/gm)].map((match) => match[1]!);
  return { name: /^module\s+(\S+)/m.exec(text)?.[1] ?? "", dependencies: new Set(modules) };
}

function readMaven(text: string): Facts {
  const own = ["parent", "dependencies", "dependencyManagement", "build", "profiles"].reduce(withoutElement, text);
  const artifacts = [...text.matchAll(/<artifactId>\s*([^<\s]+)\s*<\/artifactId>/g)].map((match) => match[1]!);
  return {
    name: /<artifactId>\s*([^<\s]+)/.exec(own)?.[1] ?? "",
    dependencies: new Set(artifacts),
    workspace: /<modules>/.test(text) ? "Maven modules" : undefined,
  };
}

function withoutElement(text: string, name: string): string {
  const [before = "", ...rest] = text.split(`<${name}>`);
  return before + rest.map((part) => part.slice(part.indexOf(`</${name}>`) + 1)).join("");
}

function readGradle(text: string): Facts {
  const coordinates = [...text.matchAll(/["']([\w.-]+):([\w.-]+)(?::[^"']*)?["']/g)].flatMap((match) => [match[1]!, match[2]!]);
  const plugins = [...text.matchAll(/\bid\s*(?:\(\s*)?["']([\w.-]+)["']/g)].map((match) => match[1]!);
  const sbt = [...text.matchAll(/"([\w.-]+)"\s*%%?\s*"([\w.-]+)"/g)].flatMap((match) => [match[1]!, match[2]!]);
  return {
    name: /^[ \t]*name\s*:=\s*"([^"\n]+)"/m.exec(text)?.[1] ?? "",
    dependencies: new Set([...coordinates, ...plugins, ...sbt]),
  };
}

function readGradleSettings(text: string): Facts {
  const name = /rootProject\.name\s*=\s*["']([^"']+)/.exec(text)?.[1] ?? "";
  return { name, workspace: /\binclude\s*(?:\(\s*)?["']/.test(text) ? "Gradle projects" : undefined };
}

function readDotnet(text: string): Facts {
  const packages = [...text.matchAll(/<PackageReference\s[^<>]*Include="([^"]+)"/g)].map((match) => match[1]!);
  const sdk = /<Project\s[^<>]*Sdk="([^"/]+)/.exec(text)?.[1];
  return { name: "", dependencies: new Set(sdk ? [sdk, ...packages] : packages) };
}

function readRuby(text: string): Facts {
  const gems = [...text.matchAll(/^[ \t]*(?:gem|\w+\.add_(?:\w+_)?dependency)\s*(?:\(\s*)?["']([\w-]+)["']/gm)].map(
    (match) => match[1]!,
  );
  return { name: /\.name\s*=\s*["']([^"']+)/.exec(text)?.[1] ?? "", dependencies: new Set(gems) };
}

function readMix(text: string): Facts {
  const dependencies = new Set([...text.matchAll(/\{\s*:(\w+)\s*,/g)].map((match) => match[1]!));
  const workspace = /apps_path:/.test(text) ? "Elixir umbrella" : undefined;
  return { name: /\bapp:\s*:(\w+)/.exec(text)?.[1] ?? "", dependencies, workspace };
}

function readSwift(text: string): Facts {
  const dependencies = new Set([...text.matchAll(/url:\s*"[^"\n]*\/([\w.-]+?)(?:\.git)?"/g)].map((match) => match[1]!));
  return { name: /\bname:\s*"([^"]+)"/.exec(text)?.[1] ?? "", dependencies };
}

function scriptsOf(scripts: Record<string, unknown>): Map<string, string> {
  return new Map(Object.entries(scripts).map(([name, value]) => [name, typeof value === "string" ? value : ""]));
}

/** The text below each header of a TOML file; enough to see names without a full parser. */
function tomlSections(text: string): Map<string, string> {
  const sections = new Map<string, string>();
  let current = "";
  for (const line of text.split(/\r?\n/)) {
    const header = /^\[{1,2}([\w."'\- \t]+)\]{1,2}[ \t]*(?:#.*)?$/.exec(line)?.[1]?.replace(/["'\s]/g, "");
    if (header !== undefined) current = header;
    sections.set(current, `${sections.get(current) ?? ""}${header === undefined ? `${line}\n` : ""}`);
  }
  return sections;
}

function keysOf(section: string): string[] {
  return [...section.matchAll(/^["']?([\w-]+)["']?(?:\.\w+)?\s*=/gm)].map((match) => match[1]!);
}

function quotedValue(section: string | undefined, key: string): string {
  return new RegExp(`^${key}\\s*=\\s*["']([^"']+)`, "m").exec(section ?? "")?.[1] ?? "";
}

/** The names in quoted requirements such as "django[async]>=5". */
function requirementsIn(text: string): string[] {
  return [...text.matchAll(/["']([A-Za-z][\w.-]*)\s*(?:\[[^\]"'\n]*\]\s*)?(?:[<>=!~;@][^"'\n]*)?["']/g)].map((match) =>
    match[1]!.toLowerCase(),
  );
}

function withoutComments(text: string): string {
  return text.replace(
    /("(?:\\[\s\S]|[^"\\])*"?)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g,
    (_, quoted: string | undefined) => quoted ?? "",
  );
}
