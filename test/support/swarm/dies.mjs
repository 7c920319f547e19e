import childProcess from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";

/** Loaded into a program to kill it without warning halfway through its n-th deletion or renaming. */
const rm = fs.rmSync;
let left = Number(process.env.DIES_BEFORE);

/** The real path of something reached through a folder that is held open. */
const placeOf = (path) =>
  path.replace(/^\/proc\/self\/fd\/\d+/, (held) => {
    try {
      return fs.readlinkSync(held);
    } catch {
      return held;
    }
  });

function count(path, isDeletion) {
  if (!placeOf(path).startsWith(process.env.DIES_WITHIN)) return;
  left -= 1;
  if (left !== 0) return;
  const isFolder = isDeletion && fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory();
  for (const entry of isFolder ? fs.readdirSync(path).slice(-1) : []) rm(`${path}/${entry}`, { recursive: true, force: true });
  process.kill(process.pid, "SIGKILL");
}

for (const name of ["rmSync", "renameSync"]) {
  const real = fs[name];
  fs[name] = (path, ...rest) => {
    count(String(path), name === "rmSync");
    return real(path, ...rest);
  };
}
const spawn = childProcess.spawn;
childProcess.spawn = (program, args, options) => {
  if (program === "/bin/rm") count(join(String(options.cwd), args.at(-1)), true);
  return spawn(program, args, options);
};
syncBuiltinESMExports();
