import { z } from "zod";
import type { Presence } from "../protocol/workers.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** A host that was admitted. */
export interface WorkerRow {
  name: string;
  publicKey: string;
  labels: string[];
  capacity: number;
  version: string;
  protocol: number;
  engine: string | null;
  wall: string | null;
  running: number;
  draining: boolean;
  seenAt: string | null;
}

export type NewWorker = Pick<WorkerRow, "name" | "publicKey" | "labels" | "capacity" | "version" | "protocol">;

const SELECT = `SELECT name, public_key AS publicKey, labels, capacity, version, protocol, engine, wall, running,
  state = 'draining' AS draining, seen_at AS seenAt FROM workers`;

export function createWorkerRows(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const all = db.prepare(`${SELECT} ORDER BY name`);
  const one = db.prepare(`${SELECT} WHERE name = ?`);
  const insert = db.prepare(
    "INSERT INTO workers (name, public_key, labels, capacity, version, protocol, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const heard = db.prepare(
    "UPDATE workers SET version = ?, protocol = ?, engine = ?, wall = ?, running = ?, seen_at = ? WHERE name = ?",
  );
  const drain = db.prepare("UPDATE workers SET state = 'draining' WHERE name = ?");
  const remove = db.prepare("DELETE FROM workers WHERE name = ?");
  const find = (name: string): WorkerRow | undefined => {
    const row = one.get(name);
    return row === undefined ? undefined : read(row);
  };
  return {
    all: (): WorkerRow[] => all.all().map(read),
    find,
    add({ name, publicKey, labels, capacity, version, protocol }: NewWorker): void {
      insert.run(name, publicKey, JSON.stringify(labels), capacity, version, protocol, now().toISOString());
    },
    /** A worker's latest report about itself. */
    heard(name: string, { version, protocol, engine, wall, running }: Presence): void {
      store.soft(() => heard.run(version, protocol, engine, wall, running, now().toISOString(), name));
    },
    drain: (name: string) => void drain.run(name),
    remove: (name: string): boolean => remove.run(name).changes > 0,
  };
}
export type WorkerRows = ReturnType<typeof createWorkerRows>;

function read(row: unknown): WorkerRow {
  const { labels, draining, ...rest } = row as Omit<WorkerRow, "labels" | "draining"> & { labels: string; draining: number };
  return { ...rest, labels: readJson(z.array(z.string()), labels) ?? [], draining: draining === 1 };
}
