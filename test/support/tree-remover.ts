import { removeTree } from "../../src/process/remove-tree.ts";

/** Deletes trees, in a separate process that runs as an unprivileged user. */
for (const path of process.argv.slice(2)) await removeTree(path);
