// Asks npm for known vulnerabilities of the bundled packages. They are development dependencies, so `npm audit` of a user's
// installation does not see them. Needs `npm run build` before it; arguments are passed on to `npm audit`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const { components } = JSON.parse(readFileSync(join(root, "dist", "bom.cdx.json"), "utf8"));

// Each under an alias, since a bundle can contain two versions of one package.
const installed = components.map(({ group, name, version }, index) => ({
  key: `bundled-${index}`,
  name: group === undefined ? name : `${group}/${name}`,
  version,
}));
const dependencies = Object.fromEntries(installed.map(({ key, name, version }) => [key, `npm:${name}@${version}`]));
const own = { name: "bundled", version: "0.0.0", private: true, dependencies };
const lock = {
  name: own.name,
  version: own.version,
  lockfileVersion: 3,
  packages: {
    "": own,
    ...Object.fromEntries(installed.map(({ key, name, version }) => [`node_modules/${key}`, { name, version }])),
  },
};

const folder = mkdtempSync(join(tmpdir(), "audit-bundled-"));
try {
  writeFileSync(join(folder, "package.json"), JSON.stringify(own));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  const args = ["audit", "--package-lock-only", "--audit-level=moderate", ...process.argv.slice(2)];
  const { status, error } = spawnSync("npm", args, { cwd: folder, stdio: "inherit" });
  if (error) throw error;
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
