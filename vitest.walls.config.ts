import { defineConfig } from "vitest/config";
import everything, { SCREENS, WALLS } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [WALLS], exclude: SCREENS } });
