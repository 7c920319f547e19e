// Makes a release: node scripts/release.js <patch | minor | major | x.y.z> [--dry-run]
// It needs a clean main branch and a green gate. Then it writes the version, the changelog, the package, the commit and its
// tag. It pushes and publishes nothing, but tells a person how to.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

const UNRELEASED = /^## Unreleased\n([\s\S]*?)(?=^## |(?![\s\S]))/m;
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;

/** Something that a person has to fix first. */
class NotYet extends Error {}

try {
  main();
} catch (error) {
  if (!(error instanceof NotYet)) throw error;
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}

function main() {
  const options = { "dry-run": { type: "boolean", default: false } };
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  const version = nextVersion(positionals[0]);
  const tag = `v${version}`;
  const changelog = readFileSync("CHANGELOG.md", "utf8");
  check(tag, changelog);
  if (values["dry-run"]) {
    console.log(`${tag} would be made of these changes, once the gate (.ci/run) is green:\n\n${changesIn(changelog)}`);
    return;
  }
  must(".ci/run", []);
  if (git("status", "--porcelain") !== "") throw new NotYet("the gate changed files of the checkout. Commit or ignore them.");
  const file = packed(version, changelog);
  git("commit", "--quiet", "--all", "--message", `chore(release): ${version}`);
  git("tag", "--annotate", tag, "--message", `${version}\n\n${changesIn(changelog)}`);
  console.log(`${tag} is committed, tagged and packed into ${file}.`);
  console.log(`To publish it: git push origin main ${tag} && npm publish ${file}`);
}

function check(tag, changelog) {
  const branch = git("branch", "--show-current");
  if (branch !== "main") throw new NotYet(`a release is made on main, and this is ${branch || "no branch"}.`);
  const changed = git("status", "--porcelain");
  if (changed !== "") throw new NotYet(`the checkout is not clean. Commit or stash first:\n${changed}`);
  if (git("tag", "--list", tag) !== "") throw new NotYet(`there is a ${tag} already. Name another version.`);
  if (changesIn(changelog) === "") throw new NotYet("CHANGELOG.md has nothing under Unreleased. Say there what has changed.");
}

/** Writes the version and the changelog, and packs. Reverts the changes if packing fails. */
function packed(version, changelog) {
  try {
    must("npm", ["version", version, "--no-git-tag-version", "--ignore-scripts"]);
    const day = new Date().toISOString().slice(0, 10);
    const dated = `## Unreleased\n\n## ${version} (${day})\n\n${changesIn(changelog)}\n\n`;
    writeFileSync("CHANGELOG.md", `${changelog.replace(UNRELEASED, () => dated).trimEnd()}\n`);
    const [made] = JSON.parse(must("npm", ["pack", "--json"], ["ignore", "pipe", "inherit"]));
    return made.filename;
  } catch (error) {
    git("checkout", "--quiet", "--", "package.json", "package-lock.json", "CHANGELOG.md");
    throw error;
  }
}

function nextVersion(wanted = "") {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const [major, minor, patch] = VERSION.exec(version).slice(1).map(Number);
  const next = { major: `${major + 1}.0.0`, minor: `${major}.${minor + 1}.0`, patch: `${major}.${minor}.${patch + 1}` }[wanted];
  if (next === undefined && !VERSION.test(wanted))
    throw new NotYet(`say which version: patch, minor, major, or one such as 1.2.3; "${wanted}" is none.`);
  return next ?? wanted;
}

function changesIn(changelog) {
  return UNRELEASED.exec(changelog)?.[1].trim() ?? "";
}

function git(...args) {
  return must("git", args, ["ignore", "pipe", "inherit"]).trim();
}

function must(program, args, stdio = "inherit") {
  const { status, stdout, error } = spawnSync(program, args, { encoding: "utf8", stdio });
  if (error || status !== 0)
    throw new NotYet(`${[program, ...args].join(" ")} failed (${error?.message ?? `exit ${status}`}). Nothing was tagged.`);
  return stdout ?? "";
}
