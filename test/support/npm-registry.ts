import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type AtTheEnd, temporaryFolder } from "./home.ts";
import { loopback } from "./orchestrator.ts";

export interface TestRegistry {
  url: string;
  /** The requested paths. */
  asked: string[];
}

/** Packs a package as npm publishes it: a gzipped archive of a folder named `package`. */
function pack(files: Record<string, string>, atTheEnd: AtTheEnd): Buffer {
  const folder = temporaryFolder(atTheEnd);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, "package", file)), { recursive: true });
    writeFileSync(join(folder, "package", file), text, { mode: 0o755 });
  }
  execFileSync("tar", ["-czf", "it.tgz", "package"], { cwd: folder });
  return readFileSync(join(folder, "it.tgz"));
}

/**
 * Starts a registry on loopback that has one version of one package. It serves the package's document, latest version and
 * archive.
 */
export async function startRegistry(
  manifest: { name: string; version: string },
  files: Record<string, string>,
  atTheEnd: AtTheEnd,
): Promise<TestRegistry> {
  const { name, version } = manifest;
  const archive = pack({ "package.json": JSON.stringify(manifest), ...files }, atTheEnd);
  const asked: string[] = [];
  const server = await loopback((request, response) => {
    const path = new URL(request.url ?? "", "http://registry").pathname;
    asked.push(path);
    const dist = {
      tarball: `${server.url}/${name}/-/${name}-${version}.tgz`,
      integrity: `sha512-${createHash("sha512").update(archive).digest("base64")}`,
      shasum: createHash("sha1").update(archive).digest("hex"),
    };
    const published = { ...manifest, dist };
    if (path === `/${name}/latest`) response.end(JSON.stringify(published));
    else if (path === `/${name}`)
      response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions: { [version]: published } }));
    else if (path.endsWith(".tgz")) response.end(archive);
    else response.writeHead(404).end("{}");
  }, atTheEnd);
  return { url: server.url, asked };
}
