import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";

/** Everything that may stand in a folder under any name. `at` is where; `aside` is a folder that links may lead to. */
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

/** Names that mean something to IO, to a language's tools, or to git. */
export const NAMES = [
  ...[".env", ".venv", "venv", "node_modules", ".yarn", ".pnp.cjs", "vendor", "deps", ".bundle"],
  ...["target", "__pycache__", ".tox", ".mypy_cache", "dist", "build", ".cache", ".idea", "secret\nname"],
];
