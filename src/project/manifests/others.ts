import { z } from "zod";
import { readSmallYaml } from "../../lib/yaml.ts";
import { Names, scriptsOf } from "./javascript.ts";
import type { ManifestFacts } from "./manifest.ts";
import { entriesOf, quotedValue, sectionsOf } from "./toml.ts";

export function readComposer(text: string): ManifestFacts {
  const json = z
    .looseObject({ name: z.string().catch(""), require: Names, "require-dev": Names, scripts: Names })
    .parse(JSON.parse(text));
  return {
    name: json.name,
    dependencies: new Set(Object.keys(json.require)),
    development: new Set(Object.keys(json["require-dev"])),
    scripts: scriptsOf(json.scripts),
  };
}

export function readPubspec(text: string): ManifestFacts {
  const read = readSmallYaml(text);
  if ("problems" in read) throw new Error(read.problems[0]!.message);
  const yaml = z
    .looseObject({ name: z.string().catch(""), dependencies: Names, dev_dependencies: Names, workspace: z.unknown().optional() })
    .parse(read.value);
  return {
    name: yaml.name,
    dependencies: new Set(Object.keys(yaml.dependencies)),
    development: new Set(Object.keys(yaml.dev_dependencies)),
    workspace: yaml.workspace ? "Dart workspace" : undefined,
  };
}

export function readCargo(text: string): ManifestFacts {
  const sections = sectionsOf(text);
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  for (const [section, body] of sections) {
    const nested = /^(workspace\.)?(?:target\..+\.)?(dev-|build-)?dependencies(?:\.([^.]+))?$/.exec(section);
    // A workspace only lists versions there, for its members to refer to.
    if (!nested || nested[1]) continue;
    for (const [name, value] of nested[3] === undefined ? entriesOf(body) : [[nested[3], body] as const])
      found[nested[2] || /optional\s*=\s*true/.test(value) ? "development" : "dependencies"].add(name);
  }
  return {
    ...found,
    name: quotedValue(sections.get("package"), "name"),
    workspace: sections.has("workspace") ? "Cargo workspace" : undefined,
  };
}

export function readGo(text: string): ManifestFacts {
  const direct = text.split("\n").filter((line) => !/\/\/ ?indirect\b/.test(line));
  const modules = direct.flatMap((line) => /^[ \t]*(?:require[ \t]+)?([\w-]+\.[\w.-]+\/\S+)[ \t]+v\d/.exec(line)?.[1] ?? []);
  return { name: /^module\s+(\S+)/m.exec(text)?.[1] ?? "", dependencies: new Set(modules) };
}

/** Everything that a test project names is for testing. */
export function readDotnet(text: string): ManifestFacts {
  const packages = [...text.matchAll(/<PackageReference\s[^<>]*Include="([^"]+)"/g)].map((match) => match[1]!);
  const sdk = /<Project\s[^<>]*Sdk="([^"/]+)/.exec(text)?.[1];
  const named = new Set(sdk ? [sdk, ...packages] : packages);
  const isTest = named.has("Microsoft.NET.Test.Sdk") || /<IsTestProject>\s*true/i.test(text);
  return { name: "", [isTest ? "development" : "dependencies"]: named };
}

export function readMix(text: string): ManifestFacts {
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  for (const line of text.split("\n")) {
    const into = /\bonly:/.test(line) ? found.development : found.dependencies;
    for (const match of line.matchAll(/\{\s*:(\w+)\s*,/g)) into.add(match[1]!);
  }
  const workspace = /apps_path:/.test(text) ? "Elixir umbrella" : undefined;
  return { name: /\bapp:\s*:(\w+)/.exec(text)?.[1] ?? "", ...found, workspace };
}

export function readSwift(text: string): ManifestFacts {
  const dependencies = new Set([...text.matchAll(/url:\s*"[^"\n]*\/([\w.-]+?)(?:\.git)?"/g)].map((match) => match[1]!));
  return { name: /\bname:\s*"([^"]+)"/.exec(text)?.[1] ?? "", dependencies };
}

export function readCmake(text: string): ManifestFacts {
  return { name: /^[ \t]*project\s*\(\s*["']?([\w.+-]+)/im.exec(text)?.[1] ?? "" };
}

export function readBazel(text: string): ManifestFacts {
  return { name: /\b(?:module|workspace)\s*\(\s*name\s*=\s*"([\w.-]+)/.exec(text)?.[1] ?? "" };
}
