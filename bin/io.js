#!/usr/bin/env node
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Node 22 and later remember compiled code between starts.
module.enableCompileCache?.(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "io-orchestrator", "compiled"));
const { main } = await import("../dist/cli/terminal.js");
main("io", process.argv.slice(2));
