import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createSandbox } from "../../src/process/sandbox.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";
import { attack, give, makeGround, USERS } from "../support/wall.ts";

const height = "project";
const git = (folder: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*", ...args], {
    cwd: folder,
    encoding: "utf8",
  }).trim();

test.each(USERS)("a command writes in its project, in /tmp and in caches, and reads the rest (%s)", async (user) => {
  const ground = makeGround(user);
  const { userHome, project } = ground;
  mkdirSync(join(userHome, ".npm"));
  mkdirSync(join(userHome, ".rustup/toolchains/stable"), { recursive: true });
  const elsewhere = temporaryFolder();
  writeFileSync(join(elsewhere, "notes"), "read me");
  give(elsewhere, user);
  give(userHome, user);
  const { stdout, output } = await attack({
    ...{ height, user, ground },
    script: [
      "echo mine > code; mkdir -p made/deep; echo x > /tmp/mine; echo x > $HOME/.npm/cached; mktemp",
      "mkdir $HOME/.rustup/toolchains/nightly && echo added",
      `cat $HOME/work/other/code ${elsewhere}/notes; echo; test -r /etc/passwd && echo readable`,
    ].join("\n"),
  });
  expect(output).not.toContain("Read-only");
  expect(stdout).toMatch(/^\/tmp\/tmp\./m);
  expect(stdout).toContain("added\nanotherread me\nreadable");
  expect(readFileSync(join(project, "code"), "utf8")).toBe("mine\n");
  expect(existsSync(join(userHome, ".npm/cached"))).toBe(true);
  expect(existsSync("/tmp/mine")).toBe(false);
  // The next command finds the files that this one left.
  expect((await attack({ height, user, ground, script: "cat /tmp/mine" })).stdout).toBe("x\n");
});

test.each(USERS)("what a command names in /tmp is shown to it, however old, odd and among however many (%s)", async (user) => {
  const ground = makeGround(user);
  const odd = `${temporaryFolder()} odd one's`;
  mkdirSync(odd);
  onTestFinished(() => rmSync(odd, { recursive: true }));
  const old = temporaryFolder();
  for (const folder of [odd, old]) {
    writeFileSync(join(folder, "notes"), "read me");
    utimesSync(folder, 1_000, 1_000);
    give(folder, user);
  }
  const socket = `${old}-socket`;
  const server = createServer();
  await new Promise<void>((listening) => server.listen(socket, listening));
  onTestFinished(() => void server.close());
  for (let index = 0; index < 20; index += 1) temporaryFolder();
  const script = [
    ...[`cat ${old}/notes`, `cd /tmp && cat ${basename(old)}/notes`, `cat "${odd}/notes"`],
    ...[`cat ${odd.replaceAll(/[ ']/g, "\\$&")}/notes`, `test -e ${socket} || echo unseen`],
  ].join("; ");
  expect((await attack({ height, user, ground, script })).stdout).toBe("read meread meread meread meunseen\n");
});

test.each(USERS)("what was put into /tmp last is seen by a program that finds it by itself (%s)", async (user) => {
  const ground = makeGround(user);
  const fresh = temporaryFolder();
  writeFileSync(join(fresh, "notes"), "read me");
  give(fresh, user);
  expect((await attack({ height, user, ground, script: "cat /tmp/*/notes" })).stdout).toContain("read me");
});

test("what comes into /tmp right after a command is seen by the next", async () => {
  const home = realpathSync(temporaryFolder());
  const project = realpathSync(temporaryFolder());
  const settings = () => ({ mode: "auto" as const, sandboxRead: [], sandboxNetwork: true });
  const sandbox = createSandbox({ home, guard: { readOnly: () => [] }, settings });
  await sandbox.wrap(["true"], project);
  for (let index = 0; index < 5; index += 1) {
    const fresh = temporaryFolder();
    expect(await sandbox.wrap(["true"], project)).toContain(fresh);
  }
});

test("the temporary folder of a project that nobody works in any more is taken away, another stays", async () => {
  const ground = makeGround("root");
  const folders = ["unused", "used"].map((name) => join(ground.home, "scratch/temporary", name));
  for (const folder of folders) {
    mkdirSync(join(folder, "closed"), { recursive: true });
    writeFileSync(join(folder, "closed", "file"), "left");
    chmodSync(join(folder, "closed"), 0o500);
  }
  utimesSync(folders[0]!, 1_000, 1_000);
  expect((await attack({ height, user: "root", ground, script: "echo ran" })).stdout).toBe("ran\n");
  await until("the unused one to go", () => !existsSync(folders[0]!));
  expect(existsSync(join(folders[1]!, "closed", "file"))).toBe(true);
});

test.each(USERS)("git forgets no worktree that lies in /tmp (%s)", async (user) => {
  const ground = makeGround(user);
  const { project } = ground;
  // One repository inside the other, as with a package that has a history of its own.
  const trees = [project, join(project, "packages/inner")].map((repository) => {
    mkdirSync(repository, { recursive: true });
    git(repository, "init", "-q", "-b", "main");
    git(repository, "commit", "-q", "--allow-empty", "-m", "first");
    const tree = join(temporaryFolder(), "tree");
    git(repository, "worktree", "add", "-q", "--detach", tree);
    utimesSync(dirname(tree), 1_000, 1_000);
    give(dirname(tree), user);
    return { repository, tree };
  });
  for (let index = 0; index < 20; index += 1) temporaryFolder();
  give(project, user);
  const prune = "git -c safe.directory='*' worktree prune -v --expire=now";
  await attack({ height, user, ground, script: `${prune}; cd packages/inner && ${prune}` });
  for (const { repository, tree } of trees) expect(git(repository, "worktree", "list")).toContain(`${tree} `);
});

test.each(USERS)("a forwarded key agent in /tmp is reached, and nothing beside it (%s)", async (user) => {
  const ground = makeGround(user);
  const folder = `/tmp/ssh-io${randomBytes(6).toString("hex")}`;
  mkdirSync(folder);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["agent.1", "other.1"]) {
    const server = createServer((socket) => socket.end("signed"));
    await new Promise<void>((listening) => server.listen(join(folder, name), listening));
    onTestFinished(() => void server.close());
  }
  give(folder, user);
  const ask = `python3 - <<'END'\nimport socket\nfor name in ["agent.1", "other.1"]:\n  try:\n    s = socket.socket(socket.AF_UNIX); s.connect("${folder}/" + name); print(name, s.recv(9).decode())\n  except OSError: pass\nEND`;
  const env = { SSH_AUTH_SOCK: join(folder, "agent.1") };
  expect((await attack({ height, user, ground, env, script: ask })).stdout).toBe("agent.1 signed\n");
});

test.each(USERS)("no way leads out of the project (%s)", async (user) => {
  const ground = makeGround(user);
  const { userHome, project, home } = ground;
  const other = temporaryFolder();
  const far = mkdtempSync("/var/tmp/io-test-");
  const beside = basename(far);
  onTestFinished(() => {
    for (const path of [far, join("/", beside)]) rmSync(path, { recursive: true, force: true });
  });
  writeFileSync(join(far, "file"), "before");
  give(far, user);
  mkdirSync(join(userHome, ".rustup/toolchains/stable"), { recursive: true });
  mkdirSync(join(userHome, ".cache"));
  mkdirSync(join(userHome, "bin"));
  for (const file of [".profile", ".gitconfig", ".npmrc", "bin/tool", ".rustup/toolchains/stable/cargo"])
    writeFileSync(join(userHome, file), "before");
  writeFileSync(join(other, "file"), "before");
  symlinkSync(join(userHome, ".bashrc"), join(project, "link"));
  give(other, user);
  give(userHome, user);
  const ways = [
    "echo x > $HOME/.bashrc",
    "echo x >> $HOME/.profile",
    "cp code $HOME/.gitconfig",
    "mv code $HOME/moved",
    "ln -f code $HOME/linked",
    "ln -s /etc/passwd $HOME/new-link",
    "rm -rf $HOME/work/other",
    "rm -f ../other/code",
    "echo x > ../other/new",
    "mkdir ../third",
    "echo x > link",
    "mv ../project ../renamed",
    "chmod 777 $HOME/.ssh",
    "touch $HOME/.npmrc",
    "sed -i s/a/b/ $HOME/bin/tool",
    "echo x > $HOME/.rustup/toolchains/stable/cargo",
    "rm -rf $HOME/.rustup/toolchains/stable",
    `echo x > ${other}/file`,
    `rm -rf ${other}`,
    "python3 -c \"open('$HOME/py','w').write('x')\"",
    "git init -q $HOME/work/other",
    "dd if=/dev/zero of=$HOME/zeros count=1",
    "truncate -s 0 $HOME/.profile",
    "ln -s $HOME .cache-link && echo x > .cache-link/through",
    // Below /tmp, the attack uses its own folder; elsewhere, the machine itself must not be written.
    `echo x > ${far}/file`,
    `rm -f ${far}/file`,
    `mkdir ${far}/made`,
    `cd ${far} && mv file moved`,
    `cd / && echo x > ${beside}`,
    `echo x > ${home}/wiki/pages/a.md`,
    `echo x > ${home}/skills/one/SKILL.md`,
  ];
  const script = ways.map((way, index) => `(${way}) >/dev/null 2>&1 && echo PASSED ${index}`).join("\n");
  const { stdout } = await attack({ height, user, ground, script });
  const passed = [...stdout.matchAll(/PASSED (\d+)/g)].map(([, index]) => ways[Number(index)]);
  expect(passed).toEqual([]);
  expect(readFileSync(join(userHome, ".bashrc"), "utf8")).toBe("# mine");
  expect(readFileSync(join(userHome, "work/other/code"), "utf8")).toBe("another");
  for (const folder of [other, far]) expect(readFileSync(join(folder, "file"), "utf8")).toBe("before");
  expect(readdirSync(far)).toEqual(["file"]);
  for (const made of ["moved", "linked", "new-link", "py", "zeros", "through"])
    expect(existsSync(join(userHome, made))).toBe(false);
});

test.each(USERS)(
  "links among the user's toolchains, and above them, break no command and cannot be exchanged (%s)",
  async (user) => {
    const ground = makeGround(user);
    const { userHome } = ground;
    const python = join(userHome, ".local/share/uv/python");
    const disk = join(userHome, "disk");
    for (const folder of [join(python, "cpython-3.12.7"), join(disk, "toolchains/stable")])
      mkdirSync(folder, { recursive: true });
    symlinkSync(join(python, "cpython-3.12.7"), join(python, "cpython-3.12"));
    symlinkSync("nowhere", join(python, "gone"));
    symlinkSync(disk, join(userHome, ".rustup"));
    writeFileSync(join(disk, "toolchains/.lock"), "");
    writeFileSync(join(disk, "toolchains/stable/cargo"), "before");
    give(userHome, user);
    const exchange =
      "ln -sfn /tmp $HOME/.local/share/uv/python/cpython-3.12 || rm $HOME/.local/share/uv/python/gone || echo kept";
    const change = "echo x > $HOME/.rustup/toolchains/stable/cargo || echo unchanged";
    const add = "mkdir $HOME/.rustup/toolchains/nightly && echo x > $HOME/.rustup/toolchains/.lock && echo added";
    const { stdout } = await attack({ height, user, ground, script: [exchange, change, add].join("\n") });
    expect(stdout).toBe("kept\nunchanged\nadded\n");
    expect(readlinkSync(join(python, "cpython-3.12"))).toBe(join(python, "cpython-3.12.7"));
  },
);

test.each(USERS)("a link that a command puts in the place of a cache opens nothing for the next one (%s)", async (user) => {
  const ground = makeGround(user);
  const { userHome } = ground;
  mkdirSync(join(userHome, ".cache/pip"), { recursive: true });
  give(userHome, user);
  const env = { PIP_CACHE_DIR: join(userHome, ".cache/pip") };
  const plant = "rmdir $HOME/.cache/pip && ln -s $HOME/work/other $HOME/.cache/pip && echo planted";
  expect((await attack({ height, user, ground, env, script: plant })).stdout).toBe("planted\n");
  await attack({ height, user, ground, env, script: "echo changed > $HOME/work/other/code" });
  expect(readFileSync(join(userHome, "work/other/code"), "utf8")).toBe("another");
});

test.each(USERS)(
  "what a person's shell or editor keeps in ~/.cache and runs at its next start stays as it is (%s)",
  async (user) => {
    const ground = makeGround(user);
    const { userHome } = ground;
    const cached = [
      "p10k-instant-prompt-pat.zsh",
      "zsh/zcompdump-host",
      "starship/init.zsh",
      "gitstatus/gitstatusd",
      "nvim/luac/a.luac",
    ];
    for (const name of [...cached, "pip/http/a"]) {
      mkdirSync(join(userHome, ".cache", name, ".."), { recursive: true });
      writeFileSync(join(userHome, ".cache", name), "before");
    }
    give(userHome, user);
    const ways = (file: string) =>
      [`echo planted > ${file}`, `echo planted > new && mv new ${file}`, `rm ${file}; mv $(dirname ${file}) gone`].join("; ");
    const { stdout } = await attack({
      ...{ height, user, ground },
      script: ["cd $HOME/.cache", ...cached.map(ways), "cat pip/http/a; echo planted > pip/http/a; echo done"].join("\n"),
    });
    expect(stdout).toBe("beforedone\n");
    for (const name of cached) expect(readFileSync(join(userHome, ".cache", name), "utf8")).toBe("before");
    expect(readFileSync(join(userHome, ".cache/pip/http/a"), "utf8")).toBe("planted\n");
  },
);

test.each(USERS)("keys and logins are out of sight, what ssh needs besides them is not (%s)", async (user) => {
  const ground = makeGround(user);
  const { userHome } = ground;
  for (const [name, text] of Object.entries({ ".ssh/known_hosts": "host", ".netrc": "hush", ".aws/credentials": "hush" })) {
    mkdirSync(join(userHome, name, ".."), { recursive: true });
    writeFileSync(join(userHome, name), text);
  }
  // People who keep their settings in a repository have links in their home.
  renameSync(join(userHome, ".ssh"), join(userHome, "keys"));
  symlinkSync("keys", join(userHome, ".ssh"));
  renameSync(join(userHome, ".aws"), join(userHome, "clouds"));
  symlinkSync(join(userHome, "clouds"), join(userHome, ".aws"));
  give(userHome, user);
  const look =
    "cat $HOME/.ssh/id $HOME/.ssh/known_hosts $HOME/.netrc $HOME/.aws/credentials $HOME/keys/id $HOME/clouds/* 2>/dev/null";
  expect((await attack({ height, user, ground, script: look })).stdout).toBe("host");
  const login = await attack({ height, user, ground, script: "cat $HOME/.netrc", profile: { withLogins: true } });
  expect(login.stdout).toBe("hush");
});

test.each(USERS)(
  "a worktree's commits reach its repository; a file that names somebody else's repository opens nothing (%s)",
  async (user) => {
    const ground = makeGround(user);
    const { userHome, project } = ground;
    const other = join(userHome, "work/other");
    for (const folder of [project, other]) {
      git(folder, "init", "-q", "-b", "main");
      git(folder, "add", "-A");
      git(folder, "commit", "-q", "-m", "first");
    }
    const tree = join(userHome, "work/tree");
    git(project, "worktree", "add", "-q", tree);
    const hostile = join(userHome, "work/hostile");
    mkdirSync(hostile);
    writeFileSync(join(hostile, ".git"), `gitdir: ${join(other, ".git")}\n`);
    give(userHome, user);
    const commit = "git -c user.name=a -c user.email=a@b -c safe.directory='*' commit -q --allow-empty -m made && echo committed";
    expect((await attack({ height, user, ground, cwd: tree, script: commit })).stdout).toContain("committed");
    expect((await attack({ height, user, ground, cwd: project, script: commit })).stdout).toContain("committed");
    expect((await attack({ height, user, ground, cwd: hostile, script: commit })).stdout).not.toContain("committed");
    expect(git(other, "log", "--format=%s")).toBe("first");
  },
);

test.each(USERS)("a home that is the project's own folder is nobody's place (%s)", async (user) => {
  const ground = makeGround(user);
  // Personal settings are often kept in git.
  git(ground.userHome, "init", "-q");
  give(join(ground.userHome, ".git"), user);
  const { stdout } = await attack({
    ...{ height, user, ground, cwd: ground.userHome },
    script:
      "for place in new .git/config .git/hooks/post-commit; do echo x > $place || echo refused; done 2>/dev/null; cat .bashrc",
  });
  expect(stdout).toBe("refused\nrefused\nrefused\n# mine");
});
