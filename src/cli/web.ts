import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Command } from "commander";
import { writeFileAtomic } from "../lib/atomic.ts";
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
      openAddress(shell, url);
    });
}

/** Opens an address that only this user may see. */
export function openAddress({ paths, env }: Shell, url: string): void {
  const page = join(paths.home, "open-page.html");
  writeFileAtomic(page, redirectTo(url.replaceAll("&", "&amp;").replaceAll('"', "&quot;")), 0o600);
  openBrowser(page, env);
}

/**
 * All users can see the arguments of processes, and the ticket in the address signs anybody in. So the browser gets the name of a
 * file that only this user can read.
 */
const redirectTo = (url: string): string =>
  `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${url}"><title>IO</title>\n`;

/** Opens a file with the system's opener; without one, the person still has the address. */
function openBrowser(file: string, { BROWSER, SystemRoot = "C:\\Windows" }: NodeJS.ProcessEnv): void {
  const openers: [string, string[]][] = [
    ...(BROWSER && isAbsolute(BROWSER) ? [[BROWSER, [file]] satisfies [string, string[]]] : []),
    process.platform === "darwin"
      ? ["/usr/bin/open", [file]]
      : process.platform === "win32"
        ? [`${SystemRoot}\\System32\\rundll32.exe`, ["url.dll,FileProtocolHandler", file]]
        : ["/usr/bin/xdg-open", [file]],
  ];
  const found = openers.find(([path]) => existsSync(path));
  if (!found) return;
  const child = spawn(found[0], found[1], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
