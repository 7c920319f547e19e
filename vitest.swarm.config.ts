import { defineConfig } from "vitest/config";
import everything, { SCREENS, SWARM } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [SWARM], exclude: SCREENS } });
