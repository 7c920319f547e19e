#!/usr/bin/env node
import { existsSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

// Node 22 and later remember compiled code between starts. It runs as it is, so it is kept where no command can write.
const home = resolve(process.env.IO_HOME || join(process.env.HOME || homedir(), ".io"));
if (existsSync(join(home, "io.db"))) module.enableCompileCache?.(join(home, "compiled"));
const { main } = await import("../dist/cli/terminal.js");
main("io", process.argv.slice(2));
