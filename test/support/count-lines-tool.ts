import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { z } from "zod";
import { type Tool, ToolError, tool } from "../../src/tools/tool.ts";

/** An example of a tool that a newcomer would write: it counts the lines of a file. */
export function countLines(): Tool {
  return tool({
    name: "count_lines",
    description: "How many lines a text file has.",
    schema: z.strictObject({ path: z.string().min(1) }),
    kind: "read",
    touches: ({ path }) => [{ path, how: "read" }],
    deadlineMs: 5_000,
    async run({ path }, { cwd }) {
      const text = await readFile(resolve(cwd, path), "utf8").catch(() => {
        throw new ToolError(`${path} cannot be read. List the folder to see what is there.`);
      });
      return `${path} has ${text.split("\n").length - 1} lines.`;
    },
  });
}
