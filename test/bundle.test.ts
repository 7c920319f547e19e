import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { packageRoot } from "../src/lib/paths.ts";

interface Component {
  group?: string;
  name: string;
  version: string;
  licenses: { license?: { id: string }; expression?: string }[];
  purl: string;
}

const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: packageRoot, encoding: "utf8" });
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
    expect(known.map(([, each]) => each.license)).toContain(licenses[0]?.license?.id ?? licenses[0]?.expression);
    expect(purl).toBe(`pkg:npm/${name.replace("@", "%40")}@${version}`);
  }
  const refs = bill.dependencies[0].dependsOn;
  expect(refs).toEqual(components.map(({ purl }) => purl));

  const licences = readFileSync(join(packageRoot, "dist", "third-party-licences.txt"), "utf8");
  for (const component of components) expect(licences).toContain(`${nameOf(component)} ${component.version}\n`);
});

test("a stack trace of the bundle names files and lines of src", () => {
  const built = pathToFileURL(join(packageRoot, "dist", "engine", "runtime-path.js")).href;
  const script = `const { findRuntime } = await import("${built}");
    await findRuntime({ COPILOT_CLI_PATH: "/nowhere/copilot" }).catch((error) => console.log(error.stack));`;
  const { stdout } = node("--enable-source-maps", "--input-type=module", "-e", script);
  const [, file, line] = /(src\/engine\/runtime-path\.ts):(\d+)/.exec(stdout) ?? [];
  expect(file).toBeDefined();
  const source = readFileSync(join(packageRoot, file!), "utf8").split("\n")[Number(line) - 1];
  expect(source).toContain("throw");
  expect(existsSync(join(packageRoot, "dist", "cli", "io.js.map"))).toBe(true);
});

test.each(["io", "swarm"])("%s has source maps switched on", (program) => {
  const tell = "data:text/javascript,process.on('exit',()=>console.error('maps:'+process.sourceMapsEnabled))";
  const { stderr } = node("--import", tell, join("bin", `${program}.js`), "--version");
  expect(stderr).toContain("maps:true");
});
