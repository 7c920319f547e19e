import { defineConfig } from "vitest/config";
import everything, { REPOSITORIES, SCREENS } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [REPOSITORIES], exclude: SCREENS, testTimeout: 300_000 } });
