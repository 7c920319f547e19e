import type { Command } from "commander";
import type { BackgroundCommand, BackgroundList, BackgroundOutput } from "../protocol/background.ts";
import { formatAllBackground, formatBackground, formatStopped } from "../protocol/background-text.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const at = (id: string) => `/api/background/${encodeURIComponent(id)}`;

/** `io background`: commands that models left running, and how to stop them. */
export function backgroundCommands(program: Command, shell: Shell): void {
  const background = program.command("background").description("commands that models left running, such as a development server");

  background
    .command("list")
    .description("what runs, since when, and its last lines; with --all what has ended too")
    .option("--all", "those that have ended too, while they are kept")
    .option(...JSON_OPTION)
    .action(async ({ all, json }: Json & { all?: boolean }) => {
      const list = await shell.client().request<BackgroundList>("GET", `/api/background${all ? "" : "?state=running"}`);
      shell.print(list, () => formatAllBackground(list.items), { json });
    });

  background
    .command("show")
    .description("one of them, with more of what it printed")
    .argument("<id>")
    .option("--lines <n>", "how many of the last lines", "200")
    .option(...JSON_OPTION)
    .action(async (id: string, { lines, json }: Json & { lines: string }) => {
      const path = `${at(id)}?lines=${encodeURIComponent(lines)}`;
      const shown = await shell.client().request<BackgroundOutput>("GET", path);
      shell.print(shown, () => formatBackground(shown), { json });
    });

  background
    .command("stop")
    .description("end one, with everything it started")
    .argument("<id>")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const stopped = await shell.client().request<BackgroundCommand>("POST", `${at(id)}/stop`);
      shell.print(stopped, () => formatStopped(stopped), options);
    });
}
