import { bring } from "../../src/git/dependencies.ts";

/** Brings what a tree has installed into another, in a process of its own that somebody ends without warning. */
const [from, to, scratch] = process.argv.slice(2) as [string, string, string];
await bring({ from, to, scratch, names: ["node_modules"], share: false, signal: new AbortController().signal });
