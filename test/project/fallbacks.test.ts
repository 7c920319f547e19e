import { chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { activated, withoutTool } from "../../src/project/fallbacks.ts";
import { temporaryFolder } from "../support/home.ts";
import { writeFiles } from "../support/swarm/real-project.ts";

/** A folder with these programs, and a project with installed programs of its own. */
function place(...programs: string[]) {
  const [bin, top] = [temporaryFolder(), temporaryFolder()];
  const own = [".venv/bin/python", ".venv/bin/pytest", ".venv/bin/serve", "node_modules/.bin/vitest"];
  writeFiles(bin, Object.fromEntries(programs.map((name) => [name, ""])));
  writeFiles(top, Object.fromEntries([...own, "packages/a/x.py"].map((name) => [name, ""])));
  writeFiles(top, { "package.json": '{"scripts": {"test:unit": "vitest"}}' });
  for (const path of [...programs.map((name) => join(bin, name)), ...own.map((name) => join(top, name))]) chmodSync(path, 0o755);
  return { top, env: { PATH: bin }, cwd: top };
}

test.each([
  ["uv run pytest -q", ".venv/bin/python -m pytest -q"],
  ["uv run --frozen --group dev pytest tests/", ".venv/bin/python -m pytest tests/"],
  ["uv run -- python -m pytest", ".venv/bin/python -m pytest"],
  ["uv run -m pytest", ".venv/bin/python -m pytest"],
  ["uvx ruff check .", ".venv/bin/python -m ruff check ."],
  ["poetry run serve --port 1", ".venv/bin/serve --port 1"],
  ["pdm run python runtests.py", ".venv/bin/python runtests.py"],
  ['pipenv run pytest -k "a or b"', '.venv/bin/python -m pytest -k "a or b"'],
  ["coverage run --source=slugify test.py", "python3 test.py"],
  ["coverage run -p -m pytest -q", "python3 -m pytest -q"],
  ["pnpm exec vitest run", "node_modules/.bin/vitest run"],
  ["npx --no-install vitest run", "node_modules/.bin/vitest run"],
  ["bunx vitest", "node_modules/.bin/vitest"],
  ["pnpm run test --coverage", "npm run test -- --coverage"],
  ["yarn test", "npm run test"],
  ["pnpm test:unit --run", "npm run test:unit -- --run"],
  ["pnpm vitest --coverage", "node_modules/.bin/vitest --coverage"],
  ["yarn vitest", "node_modules/.bin/vitest"],
  ["yarn run lint && uv run pytest", "npm run lint && .venv/bin/python -m pytest"],
])("%s is run as %s", (command, wanted) => {
  expect(withoutTool(command, place("npm"))?.command).toBe(wanted);
});

test.each([
  "uv run no-such-program",
  "npx no-such-program",
  "make test",
  "./uv run pytest",
  "echo uv run pytest",
  "uv sync",
  "pnpm install",
  "yarn no-such-program",
  "uv run",
])("%s stays as it is", (command) => {
  expect(withoutTool(command, place())).toBeUndefined();
});

test("a tool that is there runs its commands itself, and why another did not is said", () => {
  expect(withoutTool("uv run pytest", place("uv"))).toBeUndefined();
  expect(withoutTool("uv run pytest", place())?.why).toBe("uv is not here; ran with .venv");
  expect(withoutTool("pnpm test", place())).toBeUndefined();
});

test("a package finds the environment of the project above it, and no environment outside of the project", () => {
  const at = place();
  const below = { ...at, cwd: join(at.top, "packages", "a") };
  expect(withoutTool("uv run pytest", below)?.command).toBe("../../.venv/bin/python -m pytest");
  expect(withoutTool("uv run pytest", { ...below, top: below.cwd })).toBeUndefined();
});

test("commands run as if the project's environment were active, unless another is", () => {
  const at = place();
  expect(activated({ PATH: "/bin" }, at)).toEqual({ PATH: `${at.top}/.venv/bin:/bin`, VIRTUAL_ENV: `${at.top}/.venv` });
  expect(activated({ PATH: "/bin", VIRTUAL_ENV: "/mine" }, at)).toEqual({ PATH: "/bin", VIRTUAL_ENV: "/mine" });
  expect(activated({ PATH: "/bin" }, { top: "/nowhere", cwd: "/nowhere" })).toEqual({ PATH: "/bin" });
});
