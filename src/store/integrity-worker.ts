import { parentPort, workerData } from "node:worker_threads";
import { findFaultsHere } from "./integrity.ts";

parentPort?.postMessage(findFaultsHere(workerData as string));
