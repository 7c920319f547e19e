import { defineConfig } from "vitest/config";
import everything, { SCREENS } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: SCREENS, exclude: [] } });
