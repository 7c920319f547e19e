import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findRuntime, platformName } from "../../src/engine/runtime/path.ts";
import { DEFAULT_RUNTIME } from "../../src/engine/runtime/tested-versions.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { temporaryFolder } from "./home.ts";

/** The version of the runtime that the tests were told to use. */
export const expectedRuntime = (): string => process.env.IO_TEST_RUNTIME ?? DEFAULT_RUNTIME.version;

/** The real runtime, except that it reports another version, which must have the same length. */
export const disguisedRuntime = (version: string, as: string): Promise<string> =>
  wrappedRuntime(`
    const [from, to] = ${JSON.stringify([version, as])};
    const child = start(["inherit", "pipe", "inherit"]);
    child.stdout.setEncoding("latin1");
    child.stdout.on("data", (text) => process.stdout.write(Buffer.from(text.replaceAll(from, to), "latin1")));`);

/** The real runtime, except that it starts after a delay, and appends a line to the file `notes` at each start. */
export const slowRuntime = (delayMs: number, notes: string): Promise<string> =>
  wrappedRuntime(`
    require("node:fs").appendFileSync(${JSON.stringify(notes)}, "started\\n");
    setTimeout(() => start("inherit"), ${delayMs});`);

async function wrappedRuntime(script: string): Promise<string> {
  const file = join(temporaryFolder(), "copilot-runtime.js");
  writeFileSync(
    file,
    `function start(stdio) {
      const child = require("node:child_process").spawn(${JSON.stringify(await findRuntime())}, process.argv.slice(2), { stdio });
      child.once("exit", (code) => process.exit(code ?? 1));
      return child;
    }
    ${script}`,
  );
  return file;
}

/**
 * Copies IO as npm would install it, with only this one of the packages that contain a runtime. Returns the path of its
 * command.
 */
export async function installedCopy(brings: "nothing" | "the CLI's package" | "the SDK's package"): Promise<string> {
  const root = temporaryFolder();
  for (const name of ["bin", "dist", "rehearsal", "package.json"])
    cpSync(join(packageRoot, name), join(root, name), { recursive: true });
  const link = (from: string, name: string) => {
    mkdirSync(dirname(join(root, "node_modules", name)), { recursive: true });
    symlinkSync(from, join(root, "node_modules", name));
  };
  link(join(packageRoot, "node_modules", "@photostructure"), "@photostructure");
  const platform = platformName();
  if (brings === "the CLI's package") {
    const name = `@github/copilot-${platform}`;
    link(join(packageRoot, "node_modules", name), name);
  }
  if (brings === "the SDK's package") {
    const name = `@github/copilot-sdk-${platform}`;
    link(dirname(await findRuntime()), join(name, "prebuilds", platform));
    writeFileSync(join(root, "node_modules", name, "package.json"), JSON.stringify({ name, version: "1.0.14" }));
  }
  return join(root, "bin", "io.js");
}
