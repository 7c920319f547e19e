import { defineConfig } from "vitest/config";
import everything, { CRASHES } from "./vitest.config.ts";

export default defineConfig({ test: { ...everything.test, include: [CRASHES] } });
