import { parentPort, workerData } from "node:worker_threads";
import { parseJson } from "./input-json.ts";

parentPort?.postMessage(parseJson(String(workerData)));
