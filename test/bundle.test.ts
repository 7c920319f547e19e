import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../src/lib/package-root.ts";
import { bundled } from "./support/bundled.ts";

interface Component {
  group?: string;
  name: string;
  version: string;
  licenses: { license?: { id: string }; expression?: string }[];
  purl: string;
}

const nameOf = ({ group, name }: Component) => (group ? `${group}/${name}` : name);

test("the bill of materials names every library in the bundle, with its version and licence", () => {
  const bill = JSON.parse(readFileSync(join(packageRoot, "dist", "bom.cdx.json"), "utf8"));
  expect(bill).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1 });
  const { packages: locked } = JSON.parse(readFileSync(join(packageRoot, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string; license?: string }>;
  };
  const components: Component[] = bill.components;
  const names = components.map(nameOf);
  expect(names).toEqual(
    expect.arrayContaining(["@github/copilot-sdk", "@hono/zod-openapi", "commander", "hono", "undici", "yaml", "zod"]),
  );
  for (const component of components) {
    const { version, licenses, purl } = component;
    const name = nameOf(component);
    const known = Object.entries(locked).filter(([place]) => place.endsWith(`node_modules/${name}`));
    expect(known.map(([, each]) => each.version)).toContain(version);
    // A package may name its licence only in the licence text.
    expect(known.map(([, each]) => each.license ?? "MIT")).toContain(licenses[0]?.license?.id ?? licenses[0]?.expression);
    expect(purl).toBe(`pkg:npm/${name.replace("@", "%40")}@${version}`);
  }
  const refs = bill.dependencies[0].dependsOn;
  expect(refs).toEqual(components.map(({ purl }) => purl));

  const licences = readFileSync(join(packageRoot, "dist", "third-party-licences.txt"), "utf8");
  for (const component of components) expect(licences).toContain(`${nameOf(component)} ${component.version}\n`);
});

test("what is logged of a bug names files and lines of the sources, not of the bundle", async () => {
  const program = await bundled(join(packageRoot, "test", "support", "logs-a-bug.ts"));
  const { stdout } = spawnSync(process.execPath, [program], { encoding: "utf8" });
  const { error } = JSON.parse(stdout);
  for (const [stack, said] of [
    [error.stack, "new Error("],
    [error.cause.stack, "nothing.isNoFunction()"],
  ]) {
    expect(stack).not.toContain("/dist/");
    const [, file, line] = /at .*?([\w/-]+\.ts):(\d+):\d+/.exec(stack) ?? [];
    expect(file).toBe("test/support/logs-a-bug.ts");
    expect(readFileSync(join(packageRoot, file!), "utf8").split("\n")[Number(line) - 1]).toContain(said);
  }
});

test("no file of the bundle holds a letter for which Node would keep all of it at two bytes a letter", () => {
  const files = readdirSync(join(packageRoot, "dist"), { recursive: true, encoding: "utf8" });
  const programs = files.filter((file) => file.endsWith(".js") && !/^(?:test|web)/.test(file));
  expect(programs.length).toBeGreaterThan(20);
  const wide = (file: string) => /\P{ASCII}/u.test(readFileSync(join(packageRoot, "dist", file), "utf8"));
  expect(programs.filter(wide)).toEqual([]);
});

test("every file of the bundle has a map that names files of src, and holds none of their text", () => {
  const dist = join(packageRoot, "dist");
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((name) => !/^(?:test|web)/.test(name));
  const built = files.filter((name) => name.endsWith(".js"));
  expect(files.filter((name) => name.endsWith(".map")).sort()).toEqual(built.map((name) => `${name}.map`).sort());
  const map = JSON.parse(readFileSync(join(dist, "engine", "runtime", "path.js.map"), "utf8"));
  expect(map.sourcesContent).toBeUndefined();
  const sources = built.flatMap((name) => JSON.parse(readFileSync(join(dist, `${name}.map`), "utf8")).sources as string[]);
  expect(sources.filter((source) => /^(\.\.\/)+src\/engine\/runtime\/path\.ts$/.test(source))).not.toEqual([]);
});

/** The files of the bundle, and what each loads before it runs. */
function readBundle() {
  const dist = join(packageRoot, "dist");
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".js") && !name.startsWith("test") && !name.startsWith("web"),
  );
  const texts = new Map(files.map((name) => [name, readFileSync(join(dist, name), "utf8")]));
  const importedBy = (name: string) =>
    [...texts.get(name)!.matchAll(/(?<![\w$.])(?:import|export)\b[^"();]*"(\.[^"]+)"/g)].map(([, path]) =>
      join(dirname(name), path!),
    );
  const loads = (name: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(name) || !texts.has(name)) return seen;
    seen.add(name);
    for (const each of importedBy(name)) loads(each, seen);
    return seen;
  };
  const holding = (words: string) => files.filter((name) => texts.get(name)!.includes(words));
  return { loads, holding };
}
const COMMANDS = [join("cli", "io.js"), join("cli", "terminal.js")];

test("a daemon without a cluster loads nothing of the cluster's client", () => {
  const { loads, holding } = readBundle();
  const client = holding("NatsConnectionImpl");
  expect(client.length).toBeGreaterThan(0);
  const daemons = holding("function startDaemon(");
  expect(daemons.length).toBe(1);
  for (const name of [...daemons, ...COMMANDS]) expect(client.filter((each) => loads(name).has(each))).toEqual([]);
});

test.each(["CopilotClient=class", "function surveyProject"])("a command starts without what holds %s", (words) => {
  const { loads, holding } = readBundle();
  const heavy = holding(words);
  expect(heavy.length).toBeGreaterThan(0);
  for (const name of COMMANDS) expect(heavy.filter((each) => loads(name).has(each))).toEqual([]);
});
