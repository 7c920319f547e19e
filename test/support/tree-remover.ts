import { removeTree } from "../../src/process/remove-tree.ts";

/** Deletes trees, in a process of its own that runs as an ordinary user. */
for (const path of process.argv.slice(2)) await removeTree(path);
