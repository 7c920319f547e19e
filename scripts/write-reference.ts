// Writes docs/reference from the code: `npm run docs`.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../src/lib/package-root.ts";
import { referencePages } from "./reference.ts";

const folder = join(packageRoot, "docs", "reference");
mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(referencePages())) writeFileSync(join(folder, name), text);
