import { Argument, type Command } from "commander";
import { CLIENTS, type ClientAccess, type ClientName } from "../home/clients.ts";
import type { MadeClientToken } from "../protocol/tokens.ts";
import { reachDaemon } from "./chat.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

/** `io connect`: what to paste into other programs so that they can use IO. */
export function connectCommand(program: Command, shell: Shell): void {
  program
    .command("connect")
    .description("print what to paste into an editor or another program, so that it can use IO")
    .addArgument(new Argument("<client>", "the program").choices(Object.keys(CLIENTS)))
    .option(...JSON_OPTION)
    .action(async (client: ClientName, options: Json) => {
      const { where, text } = CLIENTS[client].snippet(await accessFor(client, shell));
      if (!options.json) shell.note(`Paste this into ${where}:`);
      shell.print({ client, where, text }, text, options);
    });
}

/** A client that connects by address gets a token for that purpose only; the others start IO themselves. */
async function accessFor(client: ClientName, shell: Shell): Promise<ClientAccess> {
  const { env } = shell;
  if (CLIENTS[client].speaks !== "openai") return { env, url: "", token: "" };
  const { request, url } = await reachDaemon(shell);
  const { token } = await request<MadeClientToken>("POST", "/api/tokens", { name: client, for: ["openai"] });
  return { env, url, token };
}
