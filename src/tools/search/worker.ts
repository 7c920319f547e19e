import { parentPort, workerData } from "node:worker_threads";
import { findPaths } from "./find-paths.ts";
import { findText } from "./find-text.ts";
import type { Job } from "./job.ts";

const job = workerData as Job;
parentPort?.postMessage("query" in job ? findText(job) : findPaths(job));
