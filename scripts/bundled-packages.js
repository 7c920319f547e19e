// Lists the packages in a bundle: their licences, and a bill of materials (CycloneDX) for audits.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The packages whose files esbuild's metafile names, sorted by name and version. */
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

/** The licence texts of the packages, one after another. Bundled code keeps its authors' terms. */
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

/** The licence of a package without a licence field; undefined if its text is not known. */
const licenceIn = (folder) => (/^(?:the )?MIT license\b/i.test(licenceText(folder) ?? "") ? "MIT" : undefined);

/** The bill of materials. It has no date and no serial number, so it is the same for every build of the same sources. */
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
