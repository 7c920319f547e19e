import { parentPort, workerData } from "node:worker_threads";
import { parseYaml } from "./yaml-parse.ts";

parentPort?.postMessage(parseYaml(String(workerData)));
