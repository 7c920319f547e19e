import { expect, test } from "vitest";
import { runReported } from "../../src/project/reports/run.ts";
import { temporaryFolder } from "../support/home.ts";

/** The environment variables that a check sees. */
async function seen(env: NodeJS.ProcessEnv, ...names: string[]): Promise<string> {
  const shown = names.map((name) => `[$${name}]`).join("");
  const { result } = await runReported(["/bin/sh", "-c", `echo "${shown}"`], {
    ...{ cwd: temporaryFolder(), env: { PATH: process.env.PATH, ...env }, deadlineMs: 60_000, maxOutput: 1_000 },
    signal: new AbortController().signal,
  });
  return result.output.trim();
}

test.each<[string, NodeJS.ProcessEnv, string]>([
  ["nobody said otherwise", {}, "[true]"],
  ["the user has a value of their own", { CI: "false" }, "[false]"],
  ["a CI server runs IO", { CI: "1" }, "[1]"],
])("a check is told that nobody watches it: %s", async (_, env, expected) => {
  expect(await seen(env, "CI")).toBe(expected);
});

test("what the user has set for their runners stays beside what names the tests", async () => {
  const env = { PYTEST_ADDOPTS: "-p no:cacheprovider", GOFLAGS: "-mod=mod" };
  expect(await seen(env, "PYTEST_ADDOPTS", "GOFLAGS")).toBe("[-p no:cacheprovider -rfE][-mod=mod -v]");
});
