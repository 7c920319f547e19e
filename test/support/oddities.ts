import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";

/**
 * Every kind of entry that a folder may contain under any name. `at` is its path; `aside` is a folder that links may point to.
 */
export const ODDITIES: Readonly<Record<string, (at: string, aside: string) => Promise<Server> | undefined>> = {
  file: (at) => void writeFileSync(at, "SECRET=1\n"),
  folder: (at) => {
    mkdirSync(join(at, "inner"), { recursive: true });
    writeFileSync(join(at, "inner", "x"), "x\n");
    return undefined;
  },
  "link to a folder": (at, aside) => void symlinkSync(aside, at),
  "link to a file": (at, aside) => void symlinkSync(join(aside, "file"), at),
  "broken link": (at, aside) => void symlinkSync(join(aside, "none"), at),
  "link to itself": (at) => void symlinkSync(at, at),
  socket: (at) =>
    new Promise((done) => {
      const server = createServer().listen(at, () => done(server));
    }),
  pipe: (at) => void execFileSync("mkfifo", [at]),
  "closed file": (at) => {
    writeFileSync(at, "closed\n");
    chmodSync(at, 0);
    return undefined;
  },
  "closed folder": (at) => {
    mkdirSync(join(at, "inner"), { recursive: true });
    chmodSync(at, 0);
    return undefined;
  },
  "folder with a name of two lines": (at) => void mkdirSync(join(at, "two\nlines"), { recursive: true }),
};

/** Names that have a meaning for IO, for the tools of a language, or for git. */
export const NAMES = [
  ...[".env", ".venv", "venv", "node_modules", ".yarn", ".pnp.cjs", "vendor", "deps", ".bundle"],
  ...["target", "__pycache__", ".tox", ".mypy_cache", "dist", "build", ".cache", ".idea", "secret\nname"],
];
