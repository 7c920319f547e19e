import { existsSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { installedIn } from "../../src/git/dependencies.ts";
import { openRepo } from "../../src/git/repository.ts";
import { createLog } from "../../src/lib/log.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { createInstaller } from "../../src/workers/remote/installer.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensurePython } from "../support/program.ts";
import { run as sh, writeFiles } from "../support/swarm/real-project.ts";

const BIN = join(packageRoot, "node_modules", ".bin");
const redactor = createRedactor();
const log = createLog({ redactor });
const git = testGit();

beforeAll(() => ensurePython("ensurepip", "python3-venv"));

/** A worker's host, with this PATH and the folder of what it keeps for a project. */
function host(path: string, kept: string) {
  const installer = createInstaller({
    wrap: async ([program, ...args]) => [program, ...args],
    env: { ...process.env, PATH: path },
    redactor,
    log,
  });
  return async (tree: string, names: readonly string[]) => {
    const repo = (await openRepo(git, tree))!;
    const profile = { height: "secrets", access: "write", writable: [] } as never;
    const signal = new AbortController().signal;
    const at = { git: repo.git, path: tree, branch: "main", repo, record: join(tree, ".git") };
    return installer.install({ tree: at, prefix: "", scratch: join(kept, "scratch"), kept, names, profile, signal });
  };
}

/** The project on the daemon's host with everything installed, and trees of it as workers receive them. */
async function projectWith(files: Record<string, string>, prepare: (folder: string) => void) {
  const folder = realpathSync(temporaryFolder());
  const checkout = join(folder, "checkout");
  writeFiles(checkout, files);
  prepare(checkout);
  sh(checkout, "git", "init", "-q", "-b", "main");
  sh(checkout, "git", "add", "-A");
  sh(checkout, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all");
  const repo = (await openRepo(git, checkout))!;
  const names = installedIn({ root: repo.root, ...(await repo.status()) });
  const tree = (name: string) => {
    sh(folder, "git", "clone", "-q", checkout, name);
    return join(folder, name);
  };
  return { names, tree, kept: join(folder, "kept") };
}

const app = (core: string) => ({ name: "@x/app", version: "1.0.0", type: "module", dependencies: { "@x/core": core } });
const workspace = (core: string) => ({
  ".gitignore": "node_modules/\n",
  "package.json": JSON.stringify({ name: "top", version: "1.0.0", private: true, workspaces: ["packages/*"] }),
  "pnpm-workspace.yaml": 'packages:\n  - "packages/*"\n',
  "packages/core/package.json": JSON.stringify({ name: "@x/core", version: "1.0.0", type: "module", main: "index.js" }),
  "packages/core/index.js": "export const greet = () => 'hello';\n",
  "packages/app/package.json": JSON.stringify(app(core)),
  "packages/app/index.js": "import { greet } from '@x/core';\nconsole.log(greet(), import.meta.resolve('@x/core'));\n",
});

test.each([
  ["npm", ["install", "--offline", "--no-audit", "--no-fund"], "1.0.0", "package-lock.json"],
  ["pnpm", ["install", "--offline"], "workspace:*", "pnpm-lock.yaml"],
  ["yarn", ["install", "--offline", "--silent"], "1.0.0", "yarn.lock"],
])("%s's workspaces are installed once for each state of the lock file, in every package", async (manager, args, core, lock) => {
  const program = manager === "npm" ? "npm" : join(BIN, manager);
  const { names, tree, kept } = await projectWith(workspace(core), (folder) => void sh(folder, program, ...args));
  const says = (folder: string) => sh(folder, process.execPath, "packages/app/index.js").trim();
  const first = tree("first");
  expect(await host(BIN + delimiter + process.env.PATH, kept)(first, names)).toEqual([]);
  expect(says(first)).toBe(`hello file://${first}/packages/core/index.js`);
  // The first job's tree is deleted, and this host could not install anything.
  rmSync(first, { recursive: true });
  const bare = host("/nowhere", kept);
  const second = tree("second");
  expect(await bare(second, names)).toEqual([]);
  expect(says(second)).toBe(`hello file://${second}/packages/core/index.js`);
  const third = tree("third");
  writeFileSync(join(third, lock), "\n", { flag: "a" });
  expect(await bare(third, names)).toEqual([expect.stringContaining(`${lock} asks for ${manager}, which is not installed here`)]);
});

test("an environment of Python is made once for each state of its requirements, and works in every tree", async () => {
  const files = { ".gitignore": ".venv/\n", "requirements.txt": "# nothing\n" };
  const { names, tree, kept } = await projectWith(
    files,
    (folder) => void sh(folder, "python3", "-m", "venv", "--without-pip", ".venv"),
  );
  expect(names).toEqual([".venv"]);
  const first = tree("first");
  expect(await host(process.env.PATH!, kept)(first, names)).toEqual([]);
  rmSync(first, { recursive: true });
  const second = tree("second");
  expect(await host("/nowhere", kept)(second, names)).toEqual([]);
  expect(sh(second, ".venv/bin/pip", "--version")).toContain(second);
  writeFileSync(join(second, "requirements.txt"), "# nothing more\n");
  rmSync(join(second, ".venv"), { recursive: true });
  expect(await host("/nowhere", kept)(second, names)).toEqual([expect.stringContaining("asks for python3, which is not")]);
});

test("an environment has the name that the checkout's has, and a lock file is enough where the checkout has none", async () => {
  const files = { ".gitignore": "venv/\n", "requirements.txt": "# nothing\n", "part/package-lock.json": "{}" };
  const { names, tree, kept } = await projectWith(
    files,
    (folder) => void sh(folder, "python3", "-m", "venv", "--without-pip", "venv"),
  );
  expect(names).toEqual(["venv"]);
  const named = tree("named");
  expect(await host(process.env.PATH!, kept)(named, names)).toEqual([]);
  expect(sh(named, "venv/bin/pip", "--version")).toContain(named);
  expect(existsSync(join(named, ".venv"))).toBe(false);
  const bare = tree("bare");
  expect(await host(process.env.PATH!, kept)(bare, [])).toEqual([]);
  expect([existsSync(join(bare, ".venv/bin/pip")), existsSync(join(bare, "venv"))]).toEqual([true, false]);
});
