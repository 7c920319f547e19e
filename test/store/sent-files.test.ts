import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Config } from "../../src/home/config.ts";
import { openStore } from "../../src/store/open.ts";
import { createRetention } from "../../src/store/retention.ts";
import { createSentFiles } from "../../src/store/sent-files.ts";
import { quietLog } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";

const OLD = new Date("2020-01-01T00:00:00.000Z");

test("a sent file is deleted with the last message that refers to it; others and new files are kept", async () => {
  const folder = join(temporaryFolder(), "files");
  const outside = join(temporaryFolder(), "outside.txt");
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const put = (path: string, at = OLD) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), path);
    utimesSync(join(folder, path), at, at);
  };
  for (const path of ["main/told.txt", "main/old.txt", "main/waiting.txt", "gone/all.txt"]) put(path);
  put("main/fresh.txt", new Date());
  writeFileSync(outside, "mine");
  symlinkSync(outside, join(folder, "main", "link"));
  utimesSync(outside, OLD, OLD);
  const add = store.db.prepare(
    "INSERT INTO messages (id, conversation, source, text, status, created_at, finished_at) VALUES (?, 'main', '{}', ?, ?, ?, ?)",
  );
  const tell = (id: string, name: string, status: string, at: Date) =>
    add.run(id, `(Attached document: /another/home/files/main/${name})`, status, at.toISOString(), at.toISOString());
  tell("m_old", "old.txt", "done", OLD);
  tell("m_waiting", "waiting.txt", "queued", OLD);
  tell("m_young", "told.txt", "done", new Date());

  const retention = createRetention({
    store,
    limits: () => Config.parse({}).retention,
    sessions: { isReady: () => true, names: async () => [], delete: async () => {} },
    removeUntoldFiles: createSentFiles({ store, folder }).removeUntold,
    log: quietLog,
    pauseMs: 0,
  });
  await retention.pass();
  expect(readdirSync(join(folder, "main")).filter((name) => name !== "link")).toEqual(["fresh.txt", "told.txt", "waiting.txt"]);
  expect(existsSync(join(folder, "gone"))).toBe(false);
  expect(existsSync(outside)).toBe(true);
  expect(retention.status().removed).toMatchObject({ messages: 1 });
  expect(retention.status().removed.files).toBeGreaterThanOrEqual(2);
});
