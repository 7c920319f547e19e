import type { Command } from "commander";
import { usageError } from "../lib/errors.ts";
import { type ClientToken, type MadeClientToken, TokenScope } from "../protocol/tokens.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

/** `io token`: tokens for other programs. */
export function tokenCommands(program: Command, shell: Shell): void {
  const token = program.command("token").description("tokens for other programs, each for its own purpose");

  token
    .command("create")
    .description("make a token; it is shown once")
    .argument("<name>", "which program it is for")
    .requiredOption("--for <what>", "what it opens: openai (/v1), mcp (/mcp), or both with a comma")
    .option(...JSON_OPTION)
    .action(async (name: string, { for: given, json }: Json & { for: string }) => {
      const made = await shell.client().request<MadeClientToken>("POST", "/api/tokens", { name, for: scopesIn(given) });
      shell.print(made, () => made.token, { json });
      if (!json) shell.note(`It opens ${made.for.join(" and ")} and is not shown again. Take it back: io token revoke ${name}`);
    });

  token
    .command("list")
    .description("the tokens that were made, without the tokens themselves")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await shell.client().request<{ items: ClientToken[] }>("GET", "/api/tokens");
      const none = "No tokens were made: io token create <name> --for openai";
      shell.print(list, () => list.items.map(line).join("\n") || none, options);
    });

  token
    .command("revoke")
    .description("take a token back: it opens nothing from now on")
    .argument("<name>")
    .option(...JSON_OPTION)
    .action(async (name: string, options: Json) => {
      const revoked = await shell.client().request<ClientToken>("DELETE", `/api/tokens/${encodeURIComponent(name)}`);
      shell.print(revoked, `${revoked.name} is revoked.`, options);
    });
}

function scopesIn(given: string): TokenScope[] {
  return given.split(",").map((each) => {
    const read = TokenScope.safeParse(each.trim());
    if (!read.success) throw usageError(`--for: ${JSON.stringify(each.trim())} is not one of ${TokenScope.options.join(", ")}.`);
    return read.data;
  });
}

function line({ name, for: scopes, createdAt, lastUsedAt }: ClientToken): string {
  const used = lastUsedAt === null ? "never used" : `last used ${lastUsedAt.slice(0, 16).replace("T", " ")} UTC`;
  return `${name}  ${scopes.join(",")}  made ${createdAt.slice(0, 10)}, ${used}`;
}
