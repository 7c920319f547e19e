import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { attack, EVERYONE, type Ground, give, makeGround } from "../support/wall.ts";

/** Ways to reach the secrets, each of which prints what it finds. */
const WAYS: [string, (ground: Ground) => string][] = [
  ["by their names", ({ home }) => `cat ${home}/token ${home}/config.json ${home}/io.db ${home}/io.db-wal ${home}/sessions/s`],
  [
    "by a search",
    ({ userHome }) =>
      `grep -rs . ${userHome}/.io; find ${dirname(dirname(userHome))} -name token -path '*.io*' -exec cat {} + 2>/dev/null`,
  ],
  ["through the roots of processes", ({ home }) => `for p in /proc/[0-9]*; do cat $p/root${home}/token; done`],
  [
    "through the daemon's own root",
    ({ home }) => `cat /proc/${process.pid}/root${home}/token /proc/${process.ppid}/root${home}/token`,
  ],
  ["by taking the cover away", ({ home }) => `umount ${home}; umount -l ${home}; mount -o remount,rw ${home}; cat ${home}/token`],
  ["by another mount", ({ userHome, project }) => `mkdir m; mount --bind ${userHome} ${project}/m; cat ${project}/m/.io/token`],
  ["as root of a namespace", ({ home }) => `unshare -Urm sh -c 'umount ${home}; umount -l ${home}; cat ${home}/token'`],
  ["as nobody of a namespace", ({ home }) => `unshare -Um sh -c 'umount -l ${home}; cat ${home}/token'`],
  [
    "by a bind in a namespace",
    ({ userHome }) => `mkdir m; unshare -Urm sh -c 'mount --bind ${userHome} m; mount --rbind ${userHome} m; cat m/.io/token'`,
  ],
  ["in another wall", ({ home }) => `bwrap --bind / / cat ${home}/token; bwrap --unshare-user --dev-bind / / cat ${home}/token`],
  ["by changing the root", ({ userHome }) => `chroot ${userHome} /bin/cat /.io/token; unshare -Ur chroot ${userHome} /.io/token`],
  [
    "by entering the daemon's namespaces",
    ({ home }) => `nsenter -t ${process.pid} -m cat ${home}/token; nsenter -t 1 -a cat ${home}/token`,
  ],
  [
    "by moving the folder away",
    ({ userHome }) =>
      `mv ${userHome}/.io ${userHome}/.io2; mv ${userHome} ${userHome}2; mv ${dirname(userHome)} ${dirname(userHome)}2; cat ${userHome}*/.io*/token ${dirname(userHome)}2/*/.io/token`,
  ],
  ["by a hard link", ({ home, project }) => `ln ${home}/token ${project}/t; cat ${project}/t`],
];

test.each(EVERYONE)("no way leads to IO's secrets (%s, %s)", { timeout: 120_000 }, async (height, user) => {
  const ground = makeGround(user);
  for (const [name, way] of WAYS) {
    const { output } = await attack({ height, user, ground, script: way(ground) });
    expect(output, name).not.toContain(ground.secret);
    expect(existsSync(ground.home), name).toBe(true);
  }
  expect(readFileSync(join(ground.home, "token"), "utf8")).toBe(ground.secret);
});

test.each(EVERYONE)("a file handle does not lead past the wall (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const handle = execFileSync("python3", ["-c", HANDLE_OF, join(ground.home, "token")], { encoding: "utf8" }).trim();
  const open = (place: string) => `python3 -c '${OPEN_HANDLE}' ${handle} ${place}`;
  const nested = `unshare -Ur ${open(ground.project)}; unshare -Um ${open("/")}`;
  const { output } = await attack({ height, user, ground, script: `${open(ground.project)}; ${open("/")}; ${nested}` });
  expect(output).not.toContain(ground.secret);
  expect(output.match(/refused/g)?.length).toBeGreaterThanOrEqual(2);
});

test.each(EVERYONE)("nothing of the data folder can be written but the wiki's pages (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { home } = ground;
  const before = picture(home);
  const targets = [...before.keys()].filter((file) => !file.startsWith("wiki/pages/"));
  const script = [
    ...targets.map((file) => `echo changed > ${home}/${file}; rm -f ${home}/${file}; ln -sf /dev/null ${home}/${file}`),
    ...["", "/logs", "/wiki", "/wiki/.versions", "/wiki/sources", "/skills", "/skills/one", "/runs", "/runs/other"].map(
      (folder) => `mkdir -p ${home}${folder}; echo new > ${home}${folder}/new; mkfifo ${home}${folder}/pipe`,
    ),
    `echo changed > ${home}/wiki/pages/a.md; mv ${home}/wiki ${home}/wiki2`,
  ].join("\n");
  await attack({ height, user, ground, script });
  const after = picture(home);
  expect(after.get("wiki/pages/a.md")).toBe(height === "secrets" ? "changed\n" : "a page");
  for (const file of targets) expect(after.get(file), file).toBe(before.get(file));
  // IO itself keeps its replacement for /tmp there.
  const added = [...after.keys()].filter((file) => !before.has(file) && !file.startsWith("scratch/temporary/"));
  expect(added).toEqual([]);
});

test.each(EVERYONE)("what is not named is out of sight, also another run's worktree (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { home } = ground;
  const { stdout } = await attack({ height, user, ground, script: `cd ${home} && find . -type f | sort` });
  const named = ["./skills/one/SKILL.md", "./wiki/pages/a.md", "./wiki/sources/s.txt"];
  expect(stdout.trim().split("\n").filter(Boolean)).toEqual(height === "workspace" ? [] : named);
  const place = join(home, "runs", "other", "worktrees", "run");
  const own = await attack({
    height,
    user,
    ground,
    cwd: place,
    profile: { place },
    script: `cat code; echo; echo mine > code; ls ../..`,
  });
  expect(own.stdout.trim().split("\n")).toEqual(["theirs", "worktrees"]);
  expect(readFileSync(join(place, "code"), "utf8")).toBe("mine\n");
  await expect(attack({ height, user, ground, cwd: place, script: "true", profile: { place: ground.project } })).rejects.toThrow(
    height === "workspace" ? "is out of sight" : "lies in IO's own folder",
  );
});

/** All files below a folder, with their content. */
function picture(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length + 1), entry.isFile() && existsSync(path) ? readFileSync(path, "utf8") : "no file"];
    }),
  );
}

const HANDLE_OF = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
buf = ctypes.create_string_buffer(8 + 128)
ctypes.cast(buf, ctypes.POINTER(ctypes.c_uint))[0] = 128
mount = ctypes.c_int()
if libc.name_to_handle_at(-100, sys.argv[1].encode(), buf, ctypes.byref(mount), 0) != 0: raise OSError(ctypes.get_errno(), "no handle")
print(buf.raw.hex())
`;
const OPEN_HANDLE = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
buf = ctypes.create_string_buffer(bytes.fromhex(sys.argv[1]))
for flags in (os.O_RDONLY, os.O_PATH, os.O_DIRECTORY):
    fd = libc.open_by_handle_at(os.open(sys.argv[2], os.O_RDONLY), buf, flags)
    if fd < 0: print("refused", ctypes.get_errno())
    else:
        print(os.read(os.open("/proc/self/fd/%d" % fd, os.O_RDONLY), 100))
`;

test.each(EVERYONE)("what a restore puts beside the data folder is out of sight (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const beside = ["before-20260101T000000", "restoring-7", "restored-7"].map((name) => `${ground.home}.${name}`);
  for (const folder of beside) {
    mkdirSync(folder);
    writeFileSync(join(folder, "token"), ground.secret);
    give(folder, user);
  }
  const { stdout } = await attack({
    ...{ height, user, ground },
    script: `mkdir ${ground.home}.before-1 ${ground.home}.restored-1; cat ${ground.home}.*/token; grep -rs hush ${ground.userHome}; mv ${beside[0]} ${ground.project}/x; cat x/token; echo owned > ${beside[1]}/new; echo tried`,
  });
  expect(stdout.trim()).toBe("tried");
  for (const folder of beside) expect(readdirSync(folder)).toEqual(["token"]);
  // At level "workspace", nothing can be created there either.
  if (height === "workspace") expect(readdirSync(dirname(ground.home)).filter((name) => name.endsWith("-1"))).toEqual([]);
  await expect(attack({ height, user, ground, cwd: beside[0]!, script: "ls" })).rejects.toThrow(
    /lies in IO's own folder|is out of sight/,
  );
});
