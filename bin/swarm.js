#!/usr/bin/env node
import { main } from "../dist/cli/io.js";

main("swarm", process.argv.slice(2));
