import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { conflictScene, expectBothSides, type Life, live, runOf } from "../support/swarm/lives.ts";

test("a run whose power is cut after each step, and which loses what had not waited for the disk, ends in the same result", async () => {
  const { home, project, base } = await conflictScene();
  const [onDisk, killAfter] = [join(home, "on-disk.db"), join(home, "killed-after.txt")];
  writeFileSync(killAfter, "");
  const lost = new Set<string>();
  let resume: string | undefined;
  let last: Life | undefined;
  for (let lives = 0; lives < 80; lives += 1) {
    last = await live({ ...base, onDisk, killAfter, ...(resume && { resume }) });
    if (last.signal === null) break;
    const ended = () => runOf(home).steps.filter(({ state }) => state !== "begun");
    const before = ended();
    for (const end of ["", "-wal", "-shm"]) rmSync(join(home, `io.db${end}`), { force: true });
    copyFileSync(onDisk, join(home, "io.db"));
    const kept = new Set(ended().map(({ key }) => key));
    for (const { key } of before) if (!kept.has(key)) lost.add(key);
    resume = runOf(home).row?.id;
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", reason: null });
  expectBothSides(project, resume!);
  const isLost = (kind: RegExp) => [...lost].some((key) => kind.test(key));
  const kinds = [/\/open$/, /\/commit\/1$/, /\/checks\//, /\/tidy$/, /\/merge\/1$/];
  expect(kinds.filter((kind) => !isLost(kind))).toEqual([]);
  expect([/\/draft$/, /\/review:[^/]+\/1$/, /\/qa:[^/]+\/1$/, /\/turn\//, /\/tasks:/].filter(isLost)).toEqual([]);
}, 300_000);
