import { defineConfig } from "vitest/config";
import everything, { TELEGRAM } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [TELEGRAM], exclude: [] } });
