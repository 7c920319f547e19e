import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

export function webCommand(program: Command, shell: Shell): void {
  program
    .command("web")
    .description("open the web page, signed in")
    .option("--no-open", "only print the address")
    .option(...JSON_OPTION)
    .action(async (options: Json & { open: boolean }) => {
      const client = shell.client();
      const { ticket, expiresAt } = await client.request<{ ticket: string; expiresAt: string }>("POST", "/api/tickets");
      const url = `${client.url}/?ticket=${ticket}`;
      shell.print({ url, ticket, expiresAt }, url, options);
      if (options.json || !shell.isTerminal || !options.open) return;
      shell.note("The address is good once, for a minute.");
      openBrowser(url);
    });
}

/** What opens an address on this system; where there is nothing, the person has the address. */
function openBrowser(url: string): void {
  const openers: [string, string[]][] =
    process.platform === "darwin"
      ? [["/usr/bin/open", [url]]]
      : process.platform === "win32"
        ? [[`${process.env.SystemRoot ?? "C:\\Windows"}\\System32\\rundll32.exe`, ["url.dll,FileProtocolHandler", url]]]
        : [["/usr/bin/xdg-open", [url]]];
  const found = openers.find(([path]) => existsSync(path));
  if (!found) return;
  const child = spawn(found[0], found[1], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
