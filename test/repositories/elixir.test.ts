import { expect, test } from "vitest";
import { findChecksWith } from "../../src/swarm/checks/planned-checks.ts";
import { walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram } from "../support/program.ts";
import { runOn } from "../support/swarm/real-project.ts";

const GREET = `defmodule Greet do\n  @doc """\n      iex> Greet.hello()\n      :world\n  """\n  def hello, do: :world\nend\n`;
/** A project as `mix new` creates it, with one test that fails even before the run. */
const files = {
  ".gitignore": "/_build/\n/deps/\n",
  ".formatter.exs": '[inputs: ["{mix,.formatter}.exs", "{lib,test}/**/*.{ex,exs}"]]\n',
  "mix.exs":
    'defmodule Greet.MixProject do\n  use Mix.Project\n\n  def project do\n    [app: :greet, version: "0.1.0", elixir: "~> 1.10"]\n  end\nend\n',
  ".github/workflows/ci.yml":
    "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    env:\n      MIX_ENV: test\n    steps:\n      - run: mix deps.get\n      - run: mix format --check-formatted\n      - run: mix test\n",
  "lib/greet.ex": GREET,
  "test/test_helper.exs": "ExUnit.start()\n",
  "test/greet_test.exs":
    'defmodule GreetTest do\n  use ExUnit.Case\n  doctest Greet\n\n  test "greets the world" do\n    assert Greet.hello() == :world\n  end\n\n  test "greets mars" do\n    assert Greet.hello() == :mars\n  end\nend\n',
};

async function runWith(source: string) {
  await ensureProgram("mix", "elixir");
  const { git } = walledGit(temporaryFolder(), process.env);
  const env = { PATH: process.env.PATH, HOME: temporaryFolder(), LANG: "C.UTF-8" };
  const project = { files, checks: [], writes: ["lib/greet.ex", source] as [string, string] };
  const { run } = await runOn({ ...project, parts: { findChecks: findChecksWith(git), env } });
  const ended = run.evidence
    .filter(({ tree }) => tree === run.tree)
    .map(({ command, verdict, bound }) => [command, verdict, bound]);
  return { run, ended };
}

test("Elixir: the checks of its CI are run, and what was red before is no reason against a change", async () => {
  const { run, ended } = await runWith(`${GREET.slice(0, -4)}  def bye, do: :world\nend\n`);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(ended).toEqual([
    ["MIX_ENV=test mix format --check-formatted", "passed", false],
    ["MIX_ENV=test mix test", "as before", true],
  ]);
});

test("Elixir: a change that breaks a test beside the red one is not approved, and the test is named", async () => {
  const { run } = await runWith(GREET.replace("do: :world", "do: :venus"));
  expect(run.outcome).toBe("unapproved");
  expect(run.evidence.at(-1)!.why).toContain("GreetTest test greets the world");
});
