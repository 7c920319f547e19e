import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureHome, type Paths, pathsOf } from "../../src/home/paths.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { createSandbox } from "../../src/process/sandbox.ts";
import { findDestructiveCommand } from "../../src/shell/destructive-commands.ts";
import { createPathGuard, type PathGuard } from "../../src/tools/guard.ts";
import { createPolicy } from "../../src/tools/policy.ts";
import { shell } from "../../src/tools/shell.ts";
import { soon } from "../support/soon.ts";

let root: string;
let cwd: string;
let paths: Paths;
let selfEdit: boolean;
let guard: PathGuard;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "io-policy-")));
  cwd = join(root, "project");
  mkdirSync(cwd);
  paths = pathsOf({ IO_HOME: join(root, "Home"), HOME: root });
  ensureHome(paths);
  for (const file of [paths.token, paths.config, paths.database, `${paths.database}-wal`]) writeFileSync(file, "secret");
  writeFileSync(join(paths.sessions, "events.jsonl"), "secret");
  const packageRoot = join(root, "package");
  for (const folder of ["bin", "dist", "docs"]) mkdirSync(join(packageRoot, folder), { recursive: true });
  selfEdit = false;
  guard = createPathGuard({ paths, packageRoot, selfEdit: () => selfEdit });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const reads = (path: string) => guard.refuse(path, "read", cwd) === undefined;
const writes = (path: string) => guard.refuse(path, "write", cwd) === undefined;

test("IO's secrets are out of reach by their plain names, and what stands beside them is not", () => {
  for (const name of [
    "token",
    "config.json",
    "io.db",
    "io.db-wal",
    "io.db-shm",
    "io.db.before-0002-wiki.bak",
    "sessions",
    "sessions/a/b.jsonl",
  ]) {
    expect([name, reads(join(paths.home, name))]).toEqual([name, false]);
    expect([name, writes(join(paths.home, name))]).toEqual([name, false]);
  }
  for (const name of ["wiki/pages/a.md", "skills", "token.md", "logs/io.log", "."]) {
    expect([name, reads(join(paths.home, name))]).toEqual([name, true]);
  }
  expect(reads("config.json")).toBe(true);
});

test("no tool writes a skill or switches one on, by whatever path; reading them is allowed", () => {
  const skill = join(paths.skills, "tidy");
  mkdirSync(skill);
  writeFileSync(join(skill, "SKILL.md"), "# tidy");
  symlinkSync(paths.skills, join(cwd, "elsewhere"));
  const spellings = [
    join(skill, "SKILL.md"),
    join(skill, ".io-skill.json"),
    join(paths.skills, "new", "SKILL.md"),
    relative(cwd, join(skill, ".io-skill.json")),
    "elsewhere/tidy/.io-skill.json",
    "elsewhere/fresh/SKILL.md",
  ];
  for (const path of spellings) {
    expect([path, guard.refuse(path, "write", cwd)]).toEqual([path, expect.stringContaining("only a person")]);
    expect([path, reads(path)]).toEqual([path, true]);
  }
  selfEdit = true;
  expect(writes(join(skill, ".io-skill.json"))).toBe(false);
});

test("a half-written copy of a secret is out of reach too", () => {
  expect(reads(join(paths.home, ".config.json.0a1b2c.tmp"))).toBe(false);
  expect(reads(join(paths.home, ".token.0a1b2c.tmp"))).toBe(false);
});

test("no detour leads to the secrets", () => {
  symlinkSync(paths.token, join(cwd, "file-link"));
  symlinkSync(paths.home, join(cwd, "folder-link"));
  symlinkSync("folder-link", join(cwd, "link-to-link"));
  symlinkSync(join(paths.home, "io.db-journal"), join(cwd, "dangling"));
  linkSync(paths.token, join(cwd, "hard"));
  linkSync(join(paths.sessions, "events.jsonl"), join(cwd, "hard-session"));
  linkSync(paths.token, join(paths.wiki, "hard"));
  const detours = [
    join(paths.wiki, "hard"),
    relative(cwd, paths.token),
    `./a/../../${relative(root, paths.token)}`,
    `${paths.home}//./token`,
    `${paths.home}/wiki/../token`,
    "file-link",
    "folder-link/token",
    "folder-link/sessions/events.jsonl",
    "link-to-link/config.json",
    "dangling",
    "hard",
    "hard-session",
    `/proc/self/root${paths.token}`,
    `/proc/${process.pid}/root${paths.token}`,
    `/proc/self/cwd/${relative(process.cwd(), paths.token)}`,
    `/dev/fd/../root${paths.token}`,
    join(paths.home, "TOKEN"),
    join(paths.home, "Sessions", "x"),
    `${paths.token}\0.txt`,
  ];
  for (const path of detours) {
    expect([path, reads(path)]).toEqual([path, false]);
    expect([path, writes(path)]).toEqual([path, false]);
  }
});

test("the environment and memory of running processes are out of reach", () => {
  for (const path of ["/proc/self/environ", `/proc/${process.pid}/environ`, "/proc/thread-self/mem", "/proc/1/environ"]) {
    expect([path, reads(path)]).toEqual([path, false]);
  }
  expect(reads("/proc/cpuinfo")).toBe(true);
});

test("IO's own code is read by anybody and written only with self-edit", () => {
  symlinkSync(join(root, "package", "dist"), join(cwd, "code"));
  for (const path of [
    join(root, "package/bin/io.js"),
    join(root, "package/src/new/file.ts"),
    "code/app.js",
    "../package/DIST/x.js",
  ]) {
    expect([path, reads(path)]).toEqual([path, true]);
    expect([path, writes(path)]).toEqual([path, false]);
  }
  expect(writes(join(root, "package/docs/x.md"))).toBe(true);
  selfEdit = true;
  expect(writes("code/app.js")).toBe(true);
  expect(writes(paths.daemon)).toBe(false);
});

const home = homedir();
test.each([
  "rm -rf /",
  "rm -fr /*",
  "rm -r --no-preserve-root /",
  "sudo rm -rf / ",
  "/bin/rm -Rf //",
  "\\rm -rf /./",
  "rm -rf /.. ",
  "rm --recursive --force ~",
  "rm -rf ~/",
  "rm -rf ~/*",
  "rm -rf $HOME",
  'rm -rf "$HOME"/',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  "rm -rf ${HOME}/*",
  "rm -rf ~root",
  "rm -rf /home/*",
  "rm -rf /home/bob",
  "rm -r -f -- /etc",
  "cd / && rm -rf *",
  "cd; rm -rf .",
  "echo hi; (cd /usr; rm -rf ./*)",
  "rm -rf tmp/x ../../../../../../../..",
  'rm -rf "$NO_SUCH_VARIABLE_HERE/"*',
  "find / -delete",
  "find / -type f -delete",
  "find ~ -exec rm -rf {} +",
  "cd / && find -delete",
  "bash -c 'rm -rf /'",
  'sh -ec "cd /; rm -rf *"',
  "eval 'rm -rf ~'",
  "true && FOO=1 env BAR=2 rm -rf /var",
  "ls | xargs -0 rm -rf /",
  "if true; then rm -rf /; fi",
  "rm -rf /srv/io-home",
  "rm -rf /srv/io-home/{*,.*}",
  `rm -rf '${home}'`,
  "timeout 60 rm -rf ~",
  "timeout -s KILL 1.5m rm -rf ~",
  'timeout --kill-after 5 "$T" rm -rf ~',
  "sudo -u root rm -rf /",
  "sudo -nu root -- rm -rf /",
  "sudo -uroot rm -rf /",
  "sudo --user root VAR=1 rm -rf /",
  "nice -n 5 rm -rf ~",
  "ionice -c 3 nice -5 rm -rf ~",
  "env -i rm -rf ~",
  "env -u NAME A=b rm -rf ~",
  "command rm -rf ~",
  "exec rm -rf ~",
  "exec -a name rm -rf ~",
  "xargs -n 1 -I {} rm -rf ~",
  "busybox rm -rf ~",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  'rm -rf "${HOME:?}"',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  'rm -rf "${HOME:?no home}"/*',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  "rm -rf ${HOME%/}/",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  'rm -rf "${NO_SUCH_VARIABLE_HERE:-$HOME}"',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  "rm -rf ${NO_SUCH_VARIABLE_HERE:-}/*",
  "cd ~ && rm -rf $PWD",
  'cd /; rm -rf "$PWD"',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  "cd /usr && rm -rf ${PWD}/*",
  'cd ~; rm -rf "$(pwd)"',
  'rm -rf "$HOME">/dev/null',
  "rm -rf ~>/dev/null 2>&1",
  "rm -rf 2>/dev/null ~",
  "rm &>log -rf ~",
  "rm -rf ~/{,.}*",
  "rm -rf /{bin,etc}",
  "rm -rf {~,build}",
  "rm -rf /{{x,usr},y}/",
  "rm -rf ~/*/",
  "rm -rf ~/?* ",
  "rm -rf /*/*",
  "until rm -rf ~; do :; done",
  "while ! rm -rf ~; do :; done",
  "if false; then :; elif rm -rf ~; then :; fi",
  "for x in a; do rm -rf ~; done",
  "! rm -rf ~",
  "{ rm -rf ~; }",
  "(rm -rf ~)",
  "( { timeout 5 rm -rf ~; } )",
  "cd \"$(mktemp -d)\" && bash -c 'rm -rf ~'",
  "rm -rf -- ~",
  "rm -r -- -x /",
  "rm -rf ~/./../$USER/..",
  "rm -rf $['$(rm -rf ~)']",
  "true &</dev/null rm -rf ~",
  "coproc rm -rf ~",
  "test -v 'a[$(rm -rf ~)]'",
  "true \\\r\nrm -rf ~",
  "{v}>/dev/null rm -rf ~",
  "find -L ~ -depth -delete",
  "mv ~ /tmp/x",
  "mv -t /tmp ~ a",
  "mv / x",
  "chmod -R 777 /",
  "chown -hR me: ~",
  "sudo chgrp --recursive x /etc",
  "rsync -a --delete empty/ ~/",
  "cd ~ && git clean -fdx",
  "git -C / clean -f -d",
  "dd if=/dev/zero of=/dev/sda bs=1M",
  "mkfs.ext4 /dev/nvme0n1p1",
  "cat x > /dev/sda",
  "echo x | sudo tee /dev/vda",
])("the seat belt holds: %s", (command) => {
  expect(findDestructiveCommand(command, { cwd: "/srv/project/deep", keep: ["/srv/io-home"] })).toBeDefined();
});

test.each([
  "rm -rf node_modules dist",
  "rm -rf ./*",
  "rm -rf /tmp/build",
  "rm -rf /tmp/*",
  "rm -rf ~/project/dist",
  'rm -rf "$HOME/.cache/thing"',
  "rm /etc",
  "rm -f /",
  "echo rm -rf /",
  "echo 'rm -rf /' > note.txt",
  "# rm -rf /",
  "find . -name '*.pyc' -delete",
  "find / -name core -delete",
  'dir=$(mktemp -d); rm -rf "$dir"/*',
  'for d in a b; do rm -rf "$d"/; done',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  'rm -rf "${BUILD_DIR:?}"/*',
  "git rm -r src/old",
  "cd build && rm -rf *",
  'rm -rf "$(pwd)/dist"',
  "rm -rf ./build/*",
  'rm -rf "$HOME/project/dist"',
  "rm -rf /tmp/x > /dev/null 2>&1",
  "rm -rf build >/",
  "rm -rf $PWD/dist",
  "rm -rf $PWD",
  "cd build && rm -rf $PWD/{a,b} ./{,.}*",
  "timeout 60 rm -rf node_modules",
  "sudo -u root rm -rf /tmp/x",
  "sudo -u root echo rm -rf /",
  "rm -rf ~/project/{dist,build}/*",
  "rm -rf /tmp/*/cache ~/project/*/",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  'rm -rf "${NO_SUCH_VARIABLE_HERE:-build}"/*',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own spelling
  'rm -rf "${TMP_DIR?}"/*',
  "find . -name x -exec rm -rf {} +",
  "mv build ~/",
  "mv ~/project/a ~/project/b",
  "chmod -R u+w build ~/project",
  "chmod 700 ~",
  "rsync -a --delete ~/project/ backup/",
  "git clean -fdx",
  "cd ~ && git clean -fdn",
  "dd if=/dev/zero of=disk.img count=1",
  "dd if=/dev/sda of=copy.img count=1",
  "mkfs.ext4 disk.img",
  "test 2 -gt 1 && cat < /etc/hosts > out; until false; do rm -rf out; done",
])("the seat belt does not pinch: %s", (command) => {
  expect(
    findDestructiveCommand(command, { cwd: "/srv/project/deep", env: { ...process.env, HOME: "/home/somebody" } }),
  ).toBeUndefined();
});

test("the folder a command stands in counts, also by its variable", () => {
  const at = (cwd: string, command: string) =>
    findDestructiveCommand(command, { cwd, env: { HOME: "/srv/me", PWD: "/elsewhere" } });
  expect(at("/srv/me", "rm -rf $PWD")).toBe("delete /srv/me and everything in it");
  expect(at("/", 'rm -rf "$PWD"')).toBe("delete / and everything in it");
  expect(at("/srv/me/project", "rm -rf $PWD")).toBeUndefined();
  expect(at("/srv/me", "PWD=/x; rm -rf $PWD")).toBeUndefined();
});

test("a word of very many braces is read at once", () => {
  const started = performance.now();
  expect(findDestructiveCommand(`rm -rf ${"{a,b}".repeat(200)} ~`, { cwd: "/srv/project" })).toBeDefined();
  expect(findDestructiveCommand(`rm -rf ${"{".repeat(20_000)}`, { cwd: "/srv/project" })).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(soon(5_000));
});

test("a command too long to be looked through is not run, and a long file that a command writes is no such thing", () => {
  const policy = createPolicy({ guard, keep: [] });
  const said = (command: string) =>
    policy(
      shell({ sandbox: createSandbox({ home: root, guard }), redactor: createRedactor() }),
      { command },
      { cwd: "/srv/project", actor: "orchestrator" },
    );
  expect(said("a; ".repeat(20_000))).toContain("too long to be looked through");
  expect(said(`${"a; ".repeat(20_000)} rm -rf ~`)).toContain("too long to be looked through");
  expect(said(`cat <<'EOF' > app.js\n${"const x = f(a, b); // some words\n".repeat(2_500)}EOF\nnode app.js`)).toBeUndefined();
  expect(said(`cat <<'EOF' > app.js\n${"const x = 1;\n".repeat(2_000)}EOF\nrm -rf ~`)).toContain("would delete");
});
