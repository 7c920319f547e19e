import { mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { unwrapped } from "../../src/process/sandbox.ts";
import { withoutTool } from "../../src/project/fallbacks.ts";
import { inAskedVersion, withInstalledPnpm } from "../../src/project/package-manager.ts";
import { runCheck } from "../../src/swarm/checks/run-check.ts";
import { temporaryFolder } from "../support/home.ts";
import { projectOf } from "../support/project.ts";

/** pnpm 10 and Yarn 1, as npm installed them, and a registry that nobody answers at. */
const env = {
  PATH: `${join(packageRoot, "node_modules", ".bin")}${delimiter}${process.env.PATH}`,
  HOME: temporaryFolder(afterAll),
  npm_config_registry: "http://127.0.0.1:9",
  npm_config_fetch_retries: "0",
};

function project(packageManager: string, more: Record<string, string> = {}) {
  const manifest = { name: "app", version: "1.0.0", packageManager, scripts: { test: "echo tested" } };
  const top = projectOf({ "package.json": JSON.stringify(manifest), "node_modules/.keep": "", ...more });
  return { top, cwd: top, env };
}

async function check(command: string, { top }: { top: string }) {
  const deps = { wrap: unwrapped, sandboxProfile: () => ({}), env: () => env, redactor: createRedactor([]) };
  const stop = new AbortController();
  const { end } = await runCheck({ name: "test", command, cwd: "." }, top, { ...deps, deadlineMs: 300_000, signal: stop.signal });
  return end;
}

test("pnpm in another version than the project asks for runs the checks, and does not look for that one in the network", async () => {
  const at = project("pnpm@9.1.0+sha512.abc");
  expect(await check("pnpm test", at)).toMatchObject({ exitCode: 0, output: expect.stringContaining("tested") });
  expect(withInstalledPnpm(at)?.why).toMatch(/^package\.json asks for pnpm@9\.1\.0; ran with pnpm@10\.\S+, which is here$/);
});

test("pnpm is left to itself where the version that the project asks for is downloaded, or is the one that is here", () => {
  const at = project("pnpm@9.1.0");
  const home = temporaryFolder();
  mkdirSync(join(home, ".local/share/pnpm/.tools/pnpm/9.1.0"), { recursive: true });
  mkdirSync(join(home, "Library/pnpm/.tools/pnpm/9.1.0"), { recursive: true });
  expect(withInstalledPnpm({ ...at, env: { ...env, HOME: home } })).toBeUndefined();
  const version = /pnpm@(10\S+),/.exec(withInstalledPnpm(at)!.why)![1];
  expect(withInstalledPnpm(project(`pnpm@${version}`))).toBeUndefined();
  expect(withInstalledPnpm(project("npm@11.0.0"))).toBeUndefined();
});

test("scripts run with npm where the Yarn that is here refuses the project, and the reason is told", async () => {
  const at = project("yarn@4.1.0");
  expect((await check("yarn test", at)).exitCode).toBe(1);
  const fallback = withoutTool("yarn test", at);
  expect(fallback).toEqual({
    command: "npm run test",
    why: "package.json asks for yarn@4.1.0, and yarn@1.22.22 is here; ran with npm",
  });
  expect(await check(fallback!.command, at)).toMatchObject({ exitCode: 0 });
});

test.each<[string, string, Record<string, string>]>([
  ["of the same major version", "yarn@1.22.0", {}],
  ["where the project brings its own", "yarn@4.1.0", { ".yarnrc.yml": "yarnPath: .yarn/releases/yarn-4.1.0.cjs\n" }],
])("Yarn is used as it is %s", (_, packageManager, files) => {
  expect(withoutTool("yarn test", project(packageManager, files))).toBeUndefined();
});

test("a person is told the install in the version that the project asks for", () => {
  expect(inAskedVersion(["pnpm", "install", "--frozen-lockfile"], project("pnpm@9.1.0"))).toBe(
    "npx --yes pnpm@9.1.0 install --frozen-lockfile",
  );
  expect(inAskedVersion(["yarn", "install", "--immutable"], project("yarn@4.1.0"))).toBe(
    "npx --yes @yarnpkg/cli-dist@4.1.0 install --immutable",
  );
  expect(inAskedVersion(["npm", "ci"], project("pnpm@9.1.0"))).toBeUndefined();
});
