// Tells which packages a bundle holds: their licences, and a bill of materials (CycloneDX) for whoever has to audit it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The packages whose files esbuild's metafile names, by name and version. */
export function packagesIn(root, metafile) {
  const folders = new Set(
    Object.keys(metafile.inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? []),
  );
  const packages = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    return { name, version, license: license ?? licenceIn(join(root, folder)) ?? "NOASSERTION", folder: join(root, folder) };
  });
  return packages.sort((a, b) => `${a.name} ${a.version}`.localeCompare(`${b.name} ${b.version}`, "en"));
}

/** What is bundled keeps its authors' terms: their texts, one after the other. */
export function licencesOf(packages) {
  const texts = packages.map(
    ({ name, version, license, folder }) => `${name} ${version}\n\n${licenceText(folder) ?? `Licence: ${license}`}`,
  );
  return `${texts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

function licenceText(folder) {
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return file && readFileSync(join(folder, file), "utf8").trim();
}

/** For a package that names its licence in no field; undefined for a text that is not known. */
const licenceIn = (folder) => (/^(?:the )?MIT license\b/i.test(licenceText(folder) ?? "") ? "MIT" : undefined);

/** The same for every build of the same sources: it has no date and no serial number. */
export function billOfMaterials(own, packages) {
  const components = packages.map((each) => ({ type: "library", ...described(each) }));
  const self = { type: "application", ...described(own) };
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: self },
    components,
    dependencies: [{ ref: self["bom-ref"], dependsOn: components.map((each) => each["bom-ref"]) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function described({ name, version, license }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [scoped, group, short] = /^(@[^/]+)\/(.+)$/.exec(name) ?? [];
  const isExpression = / (?:OR|AND|WITH) /.test(license);
  return {
    "bom-ref": purl,
    ...(scoped ? { group, name: short } : { name }),
    version,
    licenses: [isExpression ? { expression: license } : { license: { id: license } }],
    purl,
  };
}
