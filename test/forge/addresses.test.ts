import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createForgeFinder, readAddress } from "../../src/forge/find.ts";
import { Config } from "../../src/home/config.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const SETTINGS = {
  github: { apiUrl: "https://git.example.com/api/v3", tokenEnv: "EXAMPLE_TOKEN" },
  gitea: { apiUrl: "https://tea.example.com/sub" },
};

function finderIn(env: NodeJS.ProcessEnv, config: object = SETTINGS) {
  const redactor = createRedactor();
  const parsed = Config.parse(config);
  const finder = createForgeFinder({ git: testGit(), env, redactor, config: () => parsed, gh: () => ({ why: "not here" }) });
  return { finder, redactor };
}

async function placeOf(remotes: Record<string, string>) {
  const project = makeProject();
  for (const [name, url] of Object.entries(remotes)) git(project, "remote", "add", name, url);
  return finderIn({}).finder.placeOf(project);
}

test("a project's forge is found from its remotes, and git is sent to the same host without a login", async () => {
  const github = { kind: "github", host: "github.com", repo: "acme/widget", gitUrl: "https://github.com/acme/widget.git" };
  expect(await placeOf({ origin: "git@github.com:acme/widget.git" })).toMatchObject(github);
  expect(await placeOf({ origin: "ssh://git@github.com:22/acme/widget" })).toMatchObject(github);
  expect(await placeOf({ origin: "https://mona:secret@github.com/acme/widget.git" })).toMatchObject(github);
  expect(await placeOf({ origin: "http://github.com/acme/widget.git" })).toMatchObject(github);
  expect(await placeOf({ origin: "git@git.example.com:acme/widget.git" })).toMatchObject({
    ...{ kind: "github", apiUrl: "https://git.example.com/api/v3", gitUrl: "https://git.example.com/acme/widget.git" },
  });
  expect(await placeOf({ origin: "git@tea.example.com:acme/widget.git" })).toMatchObject({
    ...{ kind: "gitea", gitUrl: "https://tea.example.com/sub/acme/widget.git" },
  });
  expect(await placeOf({ origin: "https://github.com/mona/widget", upstream: "https://github.com/acme/widget" })).toMatchObject({
    ...{ repo: "acme/widget", headRepo: "mona/widget", gitUrl: "https://github.com/mona/widget" },
  });
  await expect(placeOf({ origin: "https://elsewhere.example.com/acme/widget" })).rejects.toThrow(
    "no remote on a forge that IO knows",
  );
  await expect(placeOf({})).rejects.toThrow("no remote on a forge");
});

test("what is no repository of a forge is not taken for one", () => {
  for (const odd of [
    "/srv/git/acme/widget.git",
    "file:///srv/acme/widget",
    "../widget",
    "ext::sh -c touch% /tmp/x",
    "https://github.com/widget",
    "https://github.com/acme/..",
    "-oProxyCommand=x:acme/widget",
  ])
    expect({ odd, read: readAddress(odd) }).toEqual({ odd, read: undefined });
});

test("a token is taken from where people have it, in order, and hidden from then on", async () => {
  const config = temporaryFolder();
  mkdirSync(join(config, "gh"));
  writeFileSync(join(config, "gh", "hosts.yml"), "github.com:\n    user: mona\n    oauth_token: from-the-login-of-gh\n");
  const here = { kind: "github" as const, host: "github.com", apiUrl: "x", tokenEnv: undefined };
  const env = { XDG_CONFIG_HOME: config };
  const { finder, redactor } = finderIn(env);
  expect(await finder.tokenFor(here)).toBe("from-the-login-of-gh");
  expect(redactor.clean("it is from-the-login-of-gh")).toBe("it is [secret]");
  const all = { ...env, GITHUB_TOKEN: "third-token", GH_TOKEN: "second-token", EXAMPLE_TOKEN: "first-token" };
  expect(await finderIn(all).finder.tokenFor({ ...here, tokenEnv: "EXAMPLE_TOKEN" })).toBe("first-token");
  expect(await finderIn(all).finder.tokenFor(here)).toBe("second-token");
  await expect(finder.tokenFor({ ...here, host: "git.example.com" })).rejects.toThrow("no token for git.example.com");
  await expect(finderIn({ GH_TOKEN: "two\nlines" }).finder.tokenFor(here)).rejects.toThrow("no token");
});
