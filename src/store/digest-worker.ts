import { parentPort, workerData } from "node:worker_threads";
import { type CountJob, countInFile } from "./digest.ts";

parentPort?.postMessage(countInFile(workerData as CountJob));
