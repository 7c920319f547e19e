import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** Loaded into a program that is to end without warning before it deletes or renames something for the n-th time. */
let left = Number(process.env.DIES_BEFORE);
for (const name of ["rmSync", "renameSync"]) {
  const real = fs[name];
  fs[name] = (path, ...rest) => {
    if (String(path).startsWith(process.env.DIES_WITHIN)) left -= 1;
    if (left === 0) process.kill(process.pid, "SIGKILL");
    return real(path, ...rest);
  };
}
syncBuiltinESMExports();
