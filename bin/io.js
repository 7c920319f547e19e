#!/usr/bin/env node
import { main } from "../dist/cli/io.js";

main("io", process.argv.slice(2));
