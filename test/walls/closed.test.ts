import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { attack, EVERYONE, makeGround } from "../support/wall.ts";

/** All files below a folder, with their content. */
function contents(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [relative(folder, join(parentPath, name)), readFileSync(join(parentPath, name), "utf8")]),
  );
}

const CLOSED = { closed: true, access: "read" as const };

test.each(EVERYONE)(
  "who is closed in writes nowhere but where it is said, and has a place for temporary files (%s, %s)",
  async (height, user) => {
    const ground = makeGround(user);
    const other = join(ground.userHome, "work", "other");
    const before = contents(ground.userHome);
    const { stdout } = await attack({
      ...{ height, user, ground, cwd: ground.project },
      profile: { ...CLOSED, writable: [other] },
      script: [
        `echo x > ${other}/new && echo written`,
        `echo x > $TMPDIR/new && echo kept; echo fine > /dev/null; head -c 1 /dev/urandom | wc -c; cat code`,
        `for f in ${ground.project}/new ${ground.project}/code ${ground.home}/new ${ground.home}/wiki/pages/a.md /new /var/new; do (echo x >> $f) 2>/dev/null && echo BREACH $f; done`,
        `ls ${ground.home}/token ${ground.home}/sessions 2>/dev/null && echo BREACH`,
        // At level "workspace", an empty home takes the place of the real one, so this may succeed.
        `(echo x >> $HOME/new; echo x >> $HOME/.bashrc; mv $HOME/work $HOME/moved) 2>/dev/null`,
        `true`,
      ].join("\n"),
    });
    expect(stdout).toBe("written\nkept\n1\nours");
    expect(contents(ground.userHome)).toEqual({ ...before, "work/other/new": "x\n" });
  },
);

test.each(EVERYONE)(
  "who is closed in has no powers, sees no process of others and writes no setting of the kernel (%s, %s)",
  async (height, user) => {
    const ground = makeGround(user);
    const { stdout } = await attack({
      ...{ height, user, ground, profile: CLOSED },
      script: [
        "grep -E '^Cap(Eff|Prm|Bnd|Inh|Amb)' /proc/self/status | grep -v ' *0*$' | grep '[1-9a-f]$'",
        `kill -0 ${process.pid} 2>/dev/null && echo BREACH; cat /proc/${process.pid}/environ 2>/dev/null && echo BREACH`,
        "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/self/oom_score_adj /sys/kernel/uevent_helper; do (exec 3>>$f) 2>/dev/null && echo BREACH $f; done",
        "mount -o remount,rw / 2>/dev/null && echo BREACH; mount -o remount,rw /proc 2>/dev/null && echo BREACH",
        "unshare -Urm sh -c 'mount -o remount,rw /; (echo x > /var/new) && echo BREACH' 2>/dev/null",
        "find /dev -type b; echo looked",
      ].join("\n"),
    });
    expect(stdout.trim()).toBe("looked");
  },
);

test.each(EVERYONE)(
  "what is to stay as it is stays so inside a folder that may be written, also if that is moved (%s, %s)",
  async (height, user) => {
    const ground = makeGround(user);
    const own = join(ground.project, "own");
    const { stdout } = await attack({
      ...{ height, user, ground, cwd: ground.project },
      profile: { closed: true, writable: [ground.project] },
      readOnly: [join(ground.project, "code")],
      script: `mkdir ${own} && echo made; (echo x >> code) 2>/dev/null && echo BREACH; rm -f code 2>/dev/null && echo BREACH; mv code ${own} 2>/dev/null && echo BREACH; cat code`,
    });
    expect(stdout).toBe("made\nours");
  },
);
