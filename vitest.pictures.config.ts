import { defineConfig } from "vitest/config";
import everything from "./vitest.config.ts";

export default defineConfig({
  test: { ...everything.test, include: ["test/web/**/*.pictures.ts"], exclude: [], testTimeout: 600_000 },
});
