import { parentPort, workerData } from "node:worker_threads";
import type { InputBudget } from "./input-budget.ts";
import { parseJson } from "./input-json.ts";

const { text, budget } = workerData as { text: string; budget: InputBudget };
parentPort?.postMessage(parseJson(text, budget));
