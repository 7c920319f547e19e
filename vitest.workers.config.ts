import { defineConfig } from "vitest/config";
import everything, { WORKERS } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: WORKERS, exclude: [] } });
