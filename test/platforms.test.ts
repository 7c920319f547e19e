import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { DEFAULT_RUNTIME, TESTED_RUNTIMES } from "../src/engine/runtime/tested-versions.ts";
import { packageRoot } from "../src/lib/package-root.ts";

interface Locked {
  version?: string;
  resolved?: string;
  integrity?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

const read = (...path: string[]) => readFileSync(join(packageRoot, ...path), "utf8");
const { packages: locked } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> };
const PLATFORMS = ["darwin", "linux", "linuxmusl", "win32"].flatMap((os) => [`${os}-arm64`, `${os}-x64`]);

/** Whether a package at a place in the tree finds another by name, with Node's resolution rules. */
function finds(place: string, name: string): boolean {
  if (locked[join(place, "node_modules", name)]) return true;
  return place !== "" && finds(place.includes("/node_modules/") ? place.slice(0, place.lastIndexOf("/node_modules/")) : "", name);
}

test("the lock holds what every platform needs, by its hash, and names no registry", () => {
  const entries = Object.entries(locked).filter(([place]) => place !== "");
  expect(entries.filter(([, { resolved, integrity }]) => resolved !== undefined || integrity === undefined)).toEqual([]);
  const missing = Object.entries(locked).flatMap(([place, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((name) =>
      finds(place, name) ? [] : [`${place}: ${name}`],
    ),
  );
  expect(missing).toEqual([]);
});

test("every platform that has a Copilot runtime is given the same one, and no older one beside it", () => {
  const packages = PLATFORMS.map((platform) => [`@github/copilot-${platform}`, DEFAULT_RUNTIME.packageVersion]);
  const { optionalDependencies } = JSON.parse(read("package.json")) as Locked;
  expect(optionalDependencies).toEqual(Object.fromEntries(packages));
  const older = TESTED_RUNTIMES.filter((runtime) => runtime !== DEFAULT_RUNTIME);
  const brought = Object.entries(locked).filter(([place, { version }]) =>
    older.some(({ packagePrefix, packageVersion }) =>
      PLATFORMS.some((platform) => place.endsWith(`/${packagePrefix}${platform}`) && version === packageVersion),
    ),
  );
  expect(brought).toEqual([]);
});

test("the gate runs on both processors and every Node that is supported, and may write nothing", () => {
  const { permissions, jobs } = parse(read(".github", "workflows", "ci.yml")) as {
    permissions: unknown;
    jobs: Record<string, { strategy: { matrix: unknown }; steps: { run?: string }[]; permissions?: unknown }>;
  };
  expect(permissions).toEqual({ contents: "read" });
  expect(Object.keys(jobs)).toEqual(["gate", "audit"]);
  expect(jobs.gate).toMatchObject({ strategy: { matrix: { os: ["ubuntu-latest", "ubuntu-24.04-arm"], node: [20, 22, 24] } } });
  expect(Object.values(jobs).map((job) => job.permissions)).toEqual([undefined, undefined]);
  expect(jobs.gate?.steps.at(-1)).toEqual({ run: ".ci/run" });
  expect(jobs.audit?.steps.at(-1)).toEqual({ run: "npm run audit:bundled" });
});
