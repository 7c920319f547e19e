import {
  constants,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, missing } from "../lib/errors.ts";
import { type Stamp, stampOf } from "./page-file.ts";

export interface Version {
  /** Names this version of its page. */
  version: string;
  /** When this text was written. */
  savedAt: string;
  bytes: number;
}

/** Earlier texts of pages. */
export interface Versions {
  /** Keeps the text a page's file holds now, before it is replaced or removed. Keeping it twice keeps it once. */
  keep(path: string, file: string): void;
  /** Keeps a copy of the text itself, so that it outlives an editor that writes into the file in place. */
  keepCopy(path: string, stamp: Stamp, text: string): void;
  /** Earlier versions, newest first; the text the page holds now is not among them. */
  list(path: string, file: string): Version[];
  read(path: string, version: string): string;
}

const KEPT = 50;
const NAME = /^(\d{8})T(\d{6})\.(\d{6})Z-[0-9a-z]+$/;

/**
 * A version is named by its file's time and inode, so keeping it before an overwrite is one hard link and no copy:
 * the old file lives on under its new name while the new one is renamed into its place.
 */
export function createVersions(folder: string): Versions {
  const placeOf = (path: string) => join(folder, path.slice("pages/".length));
  const names = (path: string) => {
    try {
      return readdirSync(placeOf(path)).filter((name) => NAME.test(name));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    }
  };
  const prune = (path: string, now?: string) => {
    const old = names(path)
      .filter((name) => name !== now)
      .sort()
      .slice(0, -KEPT);
    for (const name of old) unlinkSync(join(placeOf(path), name));
  };
  const into = (target: string, put: () => void) => {
    try {
      put();
    } catch (error) {
      if (codeOf(error) === "EEXIST") return;
      if (codeOf(error) !== "ENOENT") throw error;
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      put();
    }
  };

  return {
    keep(path, file) {
      const stamp = stampOf(file);
      if (stamp === undefined) return;
      const target = join(placeOf(path), nameOf(stamp));
      // A copy that a power cut cut short is not this text: it makes way.
      const kept = stampOf(target);
      if (kept && kept.size !== stamp.size) unlinkSync(target);
      into(target, () => {
        try {
          linkSync(file, target);
        } catch (error) {
          // A disk without hard links gets a copy.
          if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "EXDEV", "EMLINK", "ENOSYS"].includes(codeOf(error) ?? "")) throw error;
          copyFileSync(file, target, constants.COPYFILE_EXCL);
        }
      });
    },
    keepCopy(path, stamp, text) {
      const target = join(placeOf(path), nameOf(stamp));
      const half = `${target}.half`;
      if (stampOf(target) === undefined) {
        into(half, () => writeFileSync(half, text, { mode: 0o600 }));
        renameSync(half, target);
      }
      prune(path, nameOf(stamp));
    },
    list(path, file) {
      const current = stampOf(file);
      return names(path)
        .filter((name) => current === undefined || name !== nameOf(current))
        .sort()
        .reverse()
        .slice(0, KEPT)
        .map((name) => ({ version: name, savedAt: timeOf(name), bytes: statSync(join(placeOf(path), name)).size }));
    },
    read(path, version) {
      try {
        if (NAME.test(version)) return readFileSync(join(placeOf(path), version), "utf8");
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error;
      }
      throw missing(`${path} has no version "${version.slice(0, 60)}". Its history lists the ones there are.`);
    },
  };
}

function nameOf({ mtimeNs, ino }: Stamp): string {
  const micros = mtimeNs / 1000n;
  const time = new Date(Number(micros / 1000n)).toISOString().replace(/[-:]/g, "");
  return `${time.slice(0, 15)}.${String(micros % 1_000_000n).padStart(6, "0")}Z-${ino.toString(36)}`;
}

function timeOf(name: string): string {
  const [, day = "", time = "", micros = ""] = NAME.exec(name) ?? [];
  return `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}T${time.slice(0, 2)}:${time.slice(2, 4)}:${time.slice(4)}.${micros.slice(0, 3)}Z`;
}
