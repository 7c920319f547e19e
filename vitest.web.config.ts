import { defineConfig } from "vitest/config";
import everything, { WEB } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [WEB], exclude: [], testTimeout: 120_000, maxWorkers: 2 } });
