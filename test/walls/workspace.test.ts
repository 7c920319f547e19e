import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { createSandbox } from "../../src/process/sandbox.ts";
import { shell } from "../../src/tools/shell.ts";
import { attack, give, makeGround, USERS } from "../support/wall.ts";

const height = "workspace";

test.each(USERS)("a command writes in its project and in temporary folders, and nowhere else (%s)", async (user) => {
  const ground = makeGround(user);
  const { userHome } = ground;
  const places = ["$HOME/.bashrc", "$HOME/.ssh/id", "$HOME/work/other/code", "$HOME/new"];
  // These are only opened, not written, in case the sandbox does not work.
  const system = ["/etc/passwd", "/etc/hostname", "/usr/bin/env", "/beside"];
  const { stdout } = await attack({
    ...{ height, user, ground },
    script: [
      ...places.map((place) => `(echo changed >> ${place}) 2>/dev/null`),
      ...system.map((place) => `(: >> ${place}) 2>/dev/null && echo BREACH ${place}`),
      "echo mine > code; mkdir -p made; echo $TMPDIR; touch /tmp/mine /var/tmp/mine $TMPDIR/mine && echo temporary",
      "mv ../project ../project2 2>/dev/null && echo BREACH; ls -A /tmp",
    ].join("\n"),
  });
  expect(stdout).toContain("/tmp\ntemporary\n");
  expect(stdout).not.toContain("BREACH");
  expect(stdout.match(/^io-/gm)).toHaveLength(1);
  expect(readFileSync(join(ground.project, "code"), "utf8")).toBe("mine\n");
  expect(readFileSync(join(userHome, ".bashrc"), "utf8")).toBe("# mine");
  expect(readFileSync(join(userHome, ".ssh/id"), "utf8")).toBe("private key");
  expect(readFileSync(join(userHome, "work/other/code"), "utf8")).toBe("another");
  expect(existsSync(join(userHome, "new"))).toBe(false);
});

test.each(USERS)("no home is in sight but what sandboxRead names, and that cannot be written (%s)", async (user) => {
  const ground = makeGround(user);
  const look = "cat $HOME/.ssh/id $HOME/work/other/code /etc/shadow 2>/dev/null; ls -A /home /root 2>/dev/null; ls -A $HOME";
  expect((await attack({ height, user, ground, script: look })).stdout.trim()).toBe(".io\nwork");
  const named = { sandboxRead: ["~/work/other", ground.home] };
  const shown = await attack({
    ...{ height, user, ground, settings: named },
    script: `cat $HOME/work/other/code; echo; echo changed > $HOME/work/other/code; cat ${ground.home}/token`,
  });
  expect(shown.stdout.trim()).toBe("another");
  expect(shown.output).not.toContain(ground.secret);
  expect(readFileSync(join(ground.userHome, "work/other/code"), "utf8")).toBe("another");
});

test.each(USERS)("a folder around the data folder shows everything but that (%s)", async (user) => {
  const ground = makeGround(user);
  const settings = { sandboxRead: [ground.userHome] };
  const { output } = await attack({
    height,
    user,
    ground,
    settings,
    script: "cat $HOME/.bashrc; grep -rs . $HOME/.io; ls -A $HOME/.io",
  });
  expect(output).toContain("# mine");
  expect(output).not.toContain(ground.secret);
  expect(output).not.toMatch(/token|sessions|runs/);
});

test.each(USERS)("a home that is the project's own folder is nobody's place (%s)", async (user) => {
  const ground = makeGround(user);
  // Also if the data folder is elsewhere.
  for (const at of [ground, { ...ground, home: makeGround(user).home }]) {
    const place = { height, user, ground: at, cwd: ground.userHome } as const;
    const { output } = await attack({ ...place, script: "ls -A; echo changed > .bashrc; cat .ssh/id" });
    expect(output).not.toMatch(/private key|\.ssh$/m);
    expect(readFileSync(join(ground.userHome, ".bashrc"), "utf8")).toBe("# mine");
  }
});

test.each(USERS)("programs of a toolchain in the home run, and nothing else beside them is in sight (%s)", async (user) => {
  const ground = makeGround(user);
  const tool = (path: string) => {
    mkdirSync(join(ground.userHome, path, ".."), { recursive: true });
    writeFileSync(join(ground.userHome, path), "#!/bin/sh\necho from $0\n", { mode: 0o755 });
  };
  tool(".nvm/versions/v1/bin/one");
  tool(".cargo/bin/two");
  tool("bin/three");
  for (const secret of [".nvm/secret", ".cargo/credentials.toml"]) writeFileSync(join(ground.userHome, secret), ground.secret);
  give(ground.userHome, user);
  const folders = [".nvm/versions/v1/bin", ".cargo/bin", "bin"].map((folder) => join(ground.userHome, folder));
  const { output } = await attack({
    ...{ height, user, ground, env: { PATH: [...folders, "/usr/bin", "/bin"].join(":") } },
    script: `one; two; three; cat $HOME/.nvm/secret $HOME/.cargo/credentials.toml $HOME/.ssh/id; echo x > $HOME/bin/three; ls -A $HOME`,
  });
  expect(output.match(/^from /gm)).toHaveLength(3);
  expect(output).not.toContain(ground.secret);
  expect(output).not.toContain("private key");
  expect(readFileSync(join(ground.userHome, "bin/three"), "utf8")).toContain("from");
});

test.each(USERS)("the network is there unless sandboxNetwork is false (%s)", async (user) => {
  const server = createServer((socket) => void socket.end("served"));
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const ground = makeGround(user);
  const script = `cat < /dev/tcp/127.0.0.1/${port}; echo; tail -n +3 /proc/net/dev | wc -l`;
  expect((await attack({ height, user, ground, script })).stdout).toContain("served");
  const without = await attack({ height, user, ground, script, settings: { sandboxNetwork: false } });
  expect(without.stdout.trim()).toBe("1");
  const ours = await attack({ height, user, ground, script, settings: { sandboxNetwork: false }, profile: { network: true } });
  expect(ours.stdout).toContain("served");
});

test.each(USERS)("who only reviews writes in temporary folders alone (%s)", async (user) => {
  const ground = makeGround(user);
  const { stdout } = await attack({
    ...{ height, user, ground, profile: { access: "read" } },
    script: "cat code; echo; echo changed > code; touch new; mkdir made; rm -f code; touch /tmp/mine && echo temporary",
  });
  expect(stdout.trim()).toBe("ours\ntemporary");
  expect(readFileSync(join(ground.project, "code"), "utf8")).toBe("ours");
  expect(existsSync(join(ground.project, "new"))).toBe(false);
});

test.each(USERS)("a command that asks for a workspace has one although config.json asks for less (%s)", async (user) => {
  const ground = makeGround(user);
  const asked = await attack({ height: "secrets", user, ground, profile: { height: "workspace" }, script: "cat $HOME/.ssh/id" });
  expect(asked.output).not.toContain("private key");
  const less = await attack({ height, user, ground, profile: { height: "secrets" }, script: "cat $HOME/.ssh/id" });
  expect(less.output).not.toContain("private key");
});

test("where bubblewrap cannot be used a workspace is refused with what to do, and nothing runs", async () => {
  const ground = makeGround("root");
  const sandbox = createSandbox({
    home: ground.home,
    guard: { readOnly: () => [] },
    settings: () => ({ sandbox: "workspace", sandboxRead: [], sandboxNetwork: true }),
    programs: { find: () => ({ path: "/bin/false" }) },
  });
  expect(await sandbox.status()).toMatchObject({ kind: "open", detail: expect.stringContaining("may not be used here") });
  const tool = shell({ sandbox, redactor: createRedactor(), env: process.env });
  const call = tool.run(tool.schema.parse({ command: "touch ran" }), {
    ...{ cwd: ground.project, actor: "test", owner: "m", signal: new AbortController().signal },
  });
  await expect(call).rejects.toThrow(/Install bubblewrap.*allow user namespaces.*"sandbox" to "secrets"/);
  expect(existsSync(join(ground.project, "ran"))).toBe(false);
});
