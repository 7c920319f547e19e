import { z } from "zod";
import type { ManifestFacts } from "./manifest.ts";

export const Names = z.record(z.string(), z.unknown()).catch({});
const Npm = z.looseObject({
  name: z.string().catch(""),
  private: z.unknown().optional(),
  scripts: Names,
  dependencies: Names,
  devDependencies: Names,
  optionalDependencies: Names,
  peerDependencies: Names,
  workspaces: z.unknown().optional(),
  packageManager: z.string().optional().catch(undefined),
});

export function readNpm(text: string): ManifestFacts {
  const json = Npm.parse(JSON.parse(text));
  return {
    name: json.name,
    dependencies: new Set(Object.keys(json.dependencies)),
    development: new Set([json.devDependencies, json.optionalDependencies, json.peerDependencies].flatMap(Object.keys)),
    scripts: scriptsOf(json.scripts),
    workspace: json.workspaces ? "workspaces" : undefined,
    manager: /^(npm|pnpm|yarn|bun)@/.exec(json.packageManager ?? "")?.[1],
    isPrivate: json.private === true,
  };
}

const Nx = z.looseObject({ name: z.string().catch(""), targets: Names, implicitDependencies: z.array(z.string()).catch([]) });

/** A project of an Nx workspace; its targets are its scripts. */
export function readNx(text: string): ManifestFacts {
  const { name, targets, implicitDependencies } = Nx.parse(JSON.parse(withoutComments(text)));
  return { name, dependencies: new Set(implicitDependencies), scripts: scriptsOf(targets) };
}

const Deno = z.looseObject({ name: z.string().catch(""), imports: Names, tasks: Names, workspace: z.unknown().optional() });

export function readDeno(text: string): ManifestFacts {
  const json = Deno.parse(JSON.parse(withoutComments(text)));
  return {
    name: json.name,
    dependencies: new Set(Object.keys(json.imports)),
    scripts: scriptsOf(json.tasks),
    workspace: json.workspace ? "Deno workspace" : undefined,
  };
}

export function scriptsOf(scripts: Record<string, unknown>): Map<string, string> {
  return new Map(Object.entries(scripts).map(([name, value]) => [name, typeof value === "string" ? value : ""]));
}

function withoutComments(text: string): string {
  return text.replace(
    /("(?:\\[\s\S]|[^"\\])*"?)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g,
    (_, quoted: string | undefined) => quoted ?? "",
  );
}
