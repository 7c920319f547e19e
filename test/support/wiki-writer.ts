import { openWiki } from "../../src/wiki/wiki.ts";

/** A second process on the same wiki. Writes one page again and again, the given number of times or until it is killed. */
const [root = "", path = "", letter = "x", times = "1"] = process.argv.slice(2);
const quiet = () => {};
const wiki = openWiki({ root, emit: quiet, log: { debug: quiet, info: quiet, warn: quiet, error: quiet } });
process.stdout.write("ready\n");
for (let at = 0; at < Number(times); at += 1) {
  wiki.write(path, `# ${letter} ${at}\n${letter.repeat(200_000)}\nend of ${letter} ${at}\n`);
  process.stdout.write(`${at}\n`);
}
await wiki.close();
