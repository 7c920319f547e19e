import { chmodSync, lstatSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bring, installedIn } from "../../src/git/dependencies.ts";
import { NAMES, ODDITIES } from "./oddities.ts";

/**
 * Copies every oddity, under every name, from one tree into two others, and prints the results. Runs as an unprivileged user.
 */
const signal = new AbortController().signal;
const kindOf = (path: string) => {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats && (stats.isDirectory() ? "folder" : stats.isFile() ? "file" : stats.isSymbolicLink() ? "link" : "other");
};

const results: object[] = [];
const servers: { close(): unknown }[] = [];
for (const name of NAMES) {
  for (const [kind, make] of Object.entries(ODDITIES)) {
    // At the top, among the installed files, and as the parts of a virtual environment that are read.
    const places = ["", "node_modules", ".venv", ".venv/bin", ".venv/lib"];
    for (const below of name === ".cache" ? places : [""]) {
      const top = mkdtempSync(join(tmpdir(), "o-"));
      const [from, to, other, aside, scratch] = ["f", "t", "o", "a", "s"].map((each) => join(top, each)) as [
        string,
        string,
        string,
        string,
        string,
      ];
      for (const folder of [join(from, below), to, other, aside]) mkdirSync(folder, { recursive: true });
      writeFileSync(join(aside, "file"), "aside\n");
      if (below.startsWith(".venv")) writeFileSync(join(from, ".venv", "pyvenv.cfg"), `home = ${from}\n`);
      const at = join(from, below, name);
      const server = await make(at, aside);
      if (server) servers.push(server);
      const ignored = below === "" ? [name] : [`${below.split("/")[0]}/`];
      try {
        const names = installedIn({ root: from, ignored });
        await bring({ from, to, names, scratch, share: false, signal });
        await bring({ from: to, to: other, names, scratch, share: true, signal });
        const got = names.map((each) => [kindOf(join(from, each)), kindOf(join(to, each)), kindOf(join(other, each))]);
        results.push({ name, kind, below, names, got });
      } catch (error) {
        results.push({ name, kind, below, error: String(error) });
      }
      if (kind.startsWith("closed")) chmodSync(at, 0o700);
    }
  }
}
for (const server of servers) server.close();
process.stdout.write(JSON.stringify(results));
