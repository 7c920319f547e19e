import { expect, test } from "vitest";
import { testIn } from "../../src/squads/evidence.ts";

const yes = [
  "npm test",
  "npm run test:unit",
  "cd web && pnpm test",
  "CI=1 npx vitest run src",
  "npm test 2>&1",
  "go test ./...",
  "cargo test --all",
  "python3 -m pytest -q",
  "./gradlew check",
  "make -j4 test",
  "node --test",
  "bundle exec rspec",
  "bash scripts/test.sh",
  "npm t",
];
const no = [
  "npm run typecheck",
  "npm run build",
  "ls test",
  "cat test.log",
  "git add test",
  "echo npm test",
  "grep -r test .",
  "npm install",
];
const hidden = ["npm test | tail -5", "npm test || true", "npm test; echo done", "npm test &", "npm test\necho $?"];
const theirs = [
  "npm test",
  "npm test 2>&1",
  "npm test && echo fine",
  'npm test -- -t "a; b"',
  "set -o pipefail; npm test | tail",
  "cd x; npm test;",
];

test("commands that run tests are told from those that do not", () => {
  expect(yes.filter((command) => !testIn(command).isTest)).toEqual([]);
  expect(no.filter((command) => testIn(command).isTest)).toEqual([]);
});

test("a test whose exit code is hidden by what follows it is not taken for a passed one", () => {
  expect(hidden.filter((command) => testIn(command).codeIsTheirs)).toEqual([]);
  expect(theirs.filter((command) => !testIn(command).codeIsTheirs)).toEqual([]);
});
