import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));
const [name = "", ...args] = process.argv.slice(2);
if (!/^[a-z][a-z-]*$/.test(name) || name === "main" || !existsSync(join(folder, `${name}.ts`))) {
  const names = readdirSync(folder).filter((file) => file.endsWith(".ts") && file !== "main.ts");
  console.error(
    `usage: npm run bench -- <name> [flags], where <name> is one of: ${names.map((file) => file.slice(0, -3)).join(", ")}`,
  );
  process.exit(2);
}
const bench: { run: (args: string[]) => Promise<void> } = await import(`./${name}.ts`);
await bench.run(args);
