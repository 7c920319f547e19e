import type { Command } from "commander";
import type { Rule } from "../protocol/rules.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

/** `io rules`: the user's rules. */
export function rulesCommands(program: Command, shell: Shell): void {
  const rules = program.command("rules").description("what you ruled once and for all");

  rules
    .command("list", { isDefault: true })
    .description("all of them, the oldest first")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await shell.client().request<{ items: Rule[] }>("GET", "/api/rules");
      shell.print(list, () => list.items.map(line).join("\n") || 'There are no rules: io rules add "Always …"', options);
    });

  rules
    .command("add")
    .description("tell the model something in every session from now on")
    .argument("<text>", "one sentence")
    .option("--conversation <name>", "where it holds; without it, everywhere")
    .option(...JSON_OPTION)
    .action(async (text: string, { json, conversation }: Json & { conversation?: string }) => {
      const body = { text, ...(conversation !== undefined && { conversation }) };
      const made = await shell.client().request<Rule>("POST", "/api/rules", body);
      shell.print(made, `Added ${line(made)}`, { json });
    });

  rules
    .command("remove")
    .description("take a rule back")
    .argument("<id>", "such as k_…")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const gone = await shell.client().request<Rule>("DELETE", `/api/rules/${encodeURIComponent(id)}`);
      shell.print(gone, `Removed ${line(gone)}`, options);
    });
}

const line = ({ id, text, conversation, origin, createdAt }: Rule): string =>
  `${id}  ${text}  (${conversation === null ? "everywhere" : conversation}; ${origin}, ${createdAt.slice(0, 10)})`;
