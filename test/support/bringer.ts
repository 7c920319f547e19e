import { bring } from "../../src/git/dependencies.ts";

/** Copies the installed dependencies of one tree into another, in a separate process that a test kills without warning. */
const [from, to, scratch] = process.argv.slice(2) as [string, string, string];
await bring({ from, to, scratch, names: ["node_modules"], share: false, signal: new AbortController().signal });
