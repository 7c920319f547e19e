import { defineConfig, mergeConfig } from "vitest/config";
import everything, { CRASHES } from "./vitest.config.ts";

const { include: _, ...test } = everything.test ?? {};

export default mergeConfig(defineConfig({ test }), defineConfig({ test: { include: [CRASHES] } }));
