import { join } from "node:path";
import { openStore } from "../../src/store/open.ts";
import { createUndo } from "../../src/undo/undo.ts";
import { testGit } from "./git.ts";
import { quietLog } from "./swarm/quiet.ts";

// Undoes one message in a separate process, which a test kills in the middle.
const [home = "", id = ""] = process.argv.slice(2);
const store = openStore(join(home, "io.db"));
const undo = createUndo({ store, git: testGit({ home }), folder: join(home, "undo"), home, log: quietLog });
await undo.undo(id);
store.close();
