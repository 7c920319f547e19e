import { defineConfig } from "vitest/config";
import everything, { FIRST_HOUR } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [FIRST_HOUR], exclude: [], testTimeout: 180_000 } });
