import { defineConfig } from "vitest/config";
import everything, { PROVIDERS } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: PROVIDERS, exclude: [] } });
