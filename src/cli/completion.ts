import { Argument, type Command } from "commander";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

/** `io completion`: prints a shell's completion script, generated from the commands. */
export function completionCommand(program: Command, shell: Shell): void {
  program
    .command("completion")
    .description("print what a shell needs to complete io and swarm")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .option(...JSON_OPTION)
    .action(async (name: "bash" | "zsh" | "fish", { json }: Json) => {
      const { entriesOf } = await import("./completion-tree.ts");
      const { SCRIPTS } = await import("./completion-scripts.ts");
      const script = SCRIPTS[name](entriesOf(program));
      shell.print({ shell: name, script }, script.trimEnd(), { json });
    });
}
