import { parentPort, workerData } from "node:worker_threads";
import { type EditJob, editBytes } from "./edit-text.ts";

parentPort?.postMessage(editBytes(workerData as EditJob));
