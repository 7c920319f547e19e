#!/usr/bin/env node
// Stack traces name the files of src.
process.setSourceMapsEnabled(true);
const { main } = await import("../dist/cli/io.js");
main("swarm", process.argv.slice(2));
