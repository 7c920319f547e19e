import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchDisk } from "../../src/daemon/disk-watch.ts";
import type { DiskInfo } from "../../src/protocol/api.ts";
import { openStore } from "../../src/store/open.ts";
import { FAULTS, failingConnection } from "../support/failing-connection.ts";
import { temporaryFolder } from "../support/home.ts";
import { smallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

test("a disk that takes no more files is full, however many bytes are free", async () => {
  const { folder } = await smallDisk(16, onTestFinished, { files: 40 });
  const told: DiskInfo[] = [];
  const watch = watchDisk({ folder, onChange: (disk) => told.push(disk), lookMs: 10 });
  onTestFinished(watch.close);
  expect(watch.info()).toMatchObject({ state: "ok", detail: null });
  const file = (at: number) => join(folder, `f${at}`);
  for (let at = 0; at < 30; at += 1) writeFileSync(file(at), "");
  await until("the news", () => told.length === 1);
  expect(told[0]).toMatchObject({ state: "full", detail: expect.stringContaining(folder) });
  for (let at = 0; at < 30; at += 1) rmSync(file(at));
  await until("the news that there is room", () => told.length === 2);
  expect(told[1]).toMatchObject({ state: "ok", detail: null });
});

test("under a quota the disk counts as full from the first write that fails until none has failed for a while", async () => {
  const folder = temporaryFolder();
  const told: DiskInfo["state"][] = [];
  const watch = watchDisk({ folder, onChange: ({ state }) => told.push(state), lookMs: 10, quotaMs: 300 });
  const connection = failingConnection();
  const store = openStore(join(folder, "io.db"), { connect: connection.connect, onFull: watch.refused });
  onTestFinished(() => {
    connection.heal();
    store.close();
    watch.close();
  });
  const write = () => store.transaction(() => store.db.exec("DELETE FROM events"));
  const failsWith = (name: string, statement: number) => {
    const fault = FAULTS.find((each) => each.name.startsWith(name))!;
    connection.failAt(statement, fault);
    expect(write).toThrow(fault.message);
    connection.heal();
  };
  write();
  failsWith("SQLITE_INTERRUPT", 1);
  expect(told).toEqual([]);
  for (const statement of [1, 2, 3]) {
    failsWith("SQLITE_FULL", statement);
    expect(told.splice(0)).toEqual(["full"]);
    await until("the quota to be forgotten", () => told.length === 1);
    expect(told.splice(0)).toEqual(["ok"]);
  }
});
