import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** Loaded into a program that is to end without warning when it deletes or renames something for the n-th time, half-way. */
const rm = fs.rmSync;
let left = Number(process.env.DIES_BEFORE);
for (const name of ["rmSync", "renameSync"]) {
  const real = fs[name];
  fs[name] = (path, ...rest) => {
    if (String(path).startsWith(process.env.DIES_WITHIN)) left -= 1;
    if (left === 0) {
      const isFolder = name === "rmSync" && fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory();
      for (const entry of isFolder ? fs.readdirSync(path).slice(-1) : [])
        rm(`${path}/${entry}`, { recursive: true, force: true });
      process.kill(process.pid, "SIGKILL");
    }
    return real(path, ...rest);
  };
}
syncBuiltinESMExports();
