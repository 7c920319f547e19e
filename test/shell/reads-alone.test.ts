import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readPlainLine } from "../../src/shell/plain-line.ts";
import { namedPlaces, readsAlone } from "../../src/shell/reads-alone.ts";
import { readShellLine } from "../../src/tools/approvals/shell-lines.ts";
import { temporaryFolder } from "../support/home.ts";

const home = realpathSync(temporaryFolder(afterAll));
const ioHome = join(home, ".io");
const project = join(home, "code/app");
for (const folder of [".ssh", ".io/work/main", "code/app/src", "code/app/packages/one"])
  mkdirSync(join(home, folder), { recursive: true });
for (const file of [".ssh/id_rsa", ".netrc", ".io/token", ".io/config.json", ".io/work/main/notes.txt", "code/app/src/a.ts"])
  writeFileSync(join(home, file), "x");
symlinkSync("../../.ssh", join(project, "keys"));
symlinkSync("../../.io/token", join(project, "linked.txt"));
symlinkSync("/proc/self/environ", join(project, "variables"));
symlinkSync("/proc/self/cwd/keys", join(project, "roundabout"));
symlinkSync("keys", join(project, "~"));
symlinkSync("../src", join(project, "packages/sources"));

const reads = (command: string, cwd = project, border = project) =>
  readsAlone(readPlainLine(command), { cwd, home, border, ioHome });

test.each([
  "ls",
  "ls -la src | head -n 5",
  "cat src/a.ts src/missing.ts",
  "cat src/*",
  "cat packages/sources/a.ts",
  "grep -rn 'a[b]/c.*' src",
  "rg -n foo src",
  "jq '.scripts[] | .name' package.json",
  "sort -u src/a.ts",
  "wc -l src/a.ts",
  "diff src/a.ts src/b.ts",
  "ps aux",
  "ps -ef",
  "echo hello; date +%H",
  "cat /usr/share/dict/words",
])("without a sandbox this runs unasked: %s", (command) => {
  expect(reads(command)).toBe(true);
});

test.each([
  "cat ~/.ssh/id_rsa",
  "cat ~/.io/token",
  "cat ~/.io/config.json",
  "rev ~/.io/token",
  "cat ../../.io/token",
  `cat ${home}/.io/work/main/notes.txt`,
  "cat /proc/self/environ",
  "cat /proc/1/environ",
  "cat variables",
  "cat keys/id_rsa",
  "cat keys/*",
  "cat k*/id_rsa",
  "cat link*",
  "cat *",
  "cat ~/.net*",
  "cat '~/id_rsa'",
  "cat roundabout/id_rsa",
  "grep -R x src",
  "grep -rn x keys",
  "rg --follow x",
  "rg -L x",
  "diff -r src packages",
  "diff src packages",
  "sort --files0-from=list",
  "wc --files0-from=list",
  "date -f src/a.ts",
  "ps auxe",
  "ps e",
  "ps -E",
  "jq -n env",
  "jq -n '$ENV'",
  `jq -n 'import "config" as $c {search: "../../.io"}; $c'`,
  "jq -f src/a.ts",
  "jq -n --rawfile a keys/id_rsa '$a'",
  "cat --output=keys/id_rsa",
  "touch x",
  "tree -R -L 1 -H .",
  "tree -aR",
  "printf 'here%n' PATH; ls",
])("without a sandbox a person is asked about this: %s", (command) => {
  expect(reads(command)).toBe(false);
});

test("a conversation's own folder in the data folder is read unasked, and its neighbours are not", () => {
  const own = join(ioHome, "work/main");
  expect(reads("cat notes.txt", own, own)).toBe(true);
  expect(reads("cat ../../token", own, own)).toBe(false);
  expect(reads("rg x", home, home)).toBe(false);
});

test.each([
  ["touch ../a /etc/b ~/c", ["code/a", "/etc/b", "c"]],
  ["echo x > ../a", ["code/a"]],
  ["echo x >>../a 2>/dev/null", ["code/a"]],
  ["(cat < ~/in; date) &> $HOME/out", ["in", "out"]],
  ['tee "$HOME"/log <<EOF\ntext\nEOF', ["log"]],
  ["x=$(cat ../a) make --prefix=/opt/x > made.txt", ["code/a", "/opt/x"]],
  ["node build.js > /dev/null 2>&1", []],
])("a question about %j names what lies outside: %j", (command, places) => {
  expect(namedPlaces(readShellLine(command), { cwd: project, home }).sort()).toEqual(
    places.map((place) => (place.startsWith("/") ? place : join(home, place))).sort(),
  );
});

test("of a folder with very many files no glob is expanded: a person is asked", () => {
  const crowd = join(project, "crowd");
  mkdirSync(crowd);
  for (let index = 0; index < 600; index += 1) writeFileSync(join(crowd, `f${index}`), "");
  expect(reads("cat f59*", crowd)).toBe(true);
  expect(reads("cat f*", crowd)).toBe(false);
  expect(reads(`cat ${"f1* ".repeat(6)}`, crowd)).toBe(false);
});
