import { Command, CommanderError, Option } from "commander";
import { nearest } from "../lib/config.ts";
import { ExitCode } from "../lib/errors.ts";
import { packageVersion } from "../lib/version.ts";
import { approvalCommands } from "./approval.ts";
import { backupCommands } from "./backup.ts";
import { budgetCommands } from "./budget.ts";
import { isSpokenTo, openPlainChat } from "./chat.ts";
import { cleanCommand } from "./clean.ts";
import { clusterCommands } from "./cluster.ts";
import { completionCommand } from "./completion.ts";
import { conversationCommands } from "./conversation.ts";
import { daemonCommands } from "./daemon.ts";
import { doctorCommand } from "./doctor.ts";
import { logsCommand } from "./logs.ts";
import { createShell, guardOutput, report, reportUsage, type Shell } from "./output.ts";
import { sendCommand } from "./send.ts";
import { serve } from "./serve.ts";
import { serviceCommands } from "./service.ts";
import { setupCommand } from "./setup.ts";
import { skillCommands } from "./skill.ts";
import { squadCommands } from "./squad.ts";
import { swarmCommands } from "./swarm.ts";
import { taskCommands } from "./task.ts";
import { telegramCommands } from "./telegram.ts";
import { tourCommand } from "./tour.ts";
import { updateCommand } from "./update.ts";
import { usageCommand } from "./usage.ts";
import { webCommand } from "./web.ts";
import { wikiCommands } from "./wiki.ts";
import { workerCommands } from "./worker.ts";

/** Runs one command line to its end. `swarm …` is `io swarm …` under its own name. */
export async function main(program: "io" | "swarm", args: readonly string[]): Promise<void> {
  guardOutput();
  const shell = createShell();
  const command = buildProgram(shell);
  try {
    await command.parseAsync(program === "swarm" ? ["swarm", ...args] : [...args], { from: "user" });
  } catch (error) {
    const json = args.includes("--json");
    if (!(error instanceof CommanderError)) report(error, { json });
    else if (error.exitCode === 0) process.exitCode = ExitCode.done;
    else reportUsage(error.message.replace(/^error: /, ""), { json });
  }
}

function buildProgram(shell: Shell): Command {
  const program = new Command("io")
    .description("IO answers, remembers, and puts teams to work. Without a command it opens a chat.")
    .version(packageVersion(), "--version", "print the version")
    .option("--daemon", "serve in the foreground until stopped")
    .option("--self-edit", "with --daemon: let IO change its own code, for this life only")
    .addOption(new Option("--background").hideHelp())
    .showHelpAfterError("(io --help lists the commands)")
    .exitOverride()
    .action(async (options: { daemon?: boolean; selfEdit?: boolean; background?: boolean }, { args }: Command) => {
      if (args.length > 0) refuse(program, args);
      if (options.daemon || !(await isSpokenTo(shell))) await serve(shell, options);
      else await openPlainChat(shell);
    });
  daemonCommands(program, shell);
  logsCommand(program, shell);
  sendCommand(program, shell);
  setupCommand(program, shell);
  doctorCommand(program, shell);
  tourCommand(program, shell);
  updateCommand(program, shell);
  squadCommands(program, shell);
  taskCommands(program, shell);
  conversationCommands(program, shell);
  approvalCommands(program, shell);
  budgetCommands(program, shell);
  usageCommand(program, shell);
  telegramCommands(program, shell);
  clusterCommands(program, shell);
  workerCommands(program, shell);
  webCommand(program, shell);
  wikiCommands(program, shell);
  skillCommands(program, shell);
  swarmCommands(program, shell);
  cleanCommand(program, shell);
  backupCommands(program, shell);
  serviceCommands(program, shell);
  completionCommand(program, shell);
  for (const command of program.commands) for (const each of [command, ...command.commands]) each.exitOverride();
  // Not for its commands: what they cannot make sense of is refused by themselves.
  return program.allowExcessArguments().allowUnknownOption();
}

/** Commander suggests only among the commands of a group, not among the groups themselves. */
function refuse(program: Command, args: readonly string[]): never {
  const typed = args.find((arg) => !arg.startsWith("-"));
  if (typed === undefined) program.error(`error: unknown option '${args[0]}'`);
  const names = program.commands.map((command) => command.name());
  const near = nearest(typed, names);
  program.error(`error: unknown command '${typed}'${near ? `\n(Did you mean ${near}?)` : ""}`);
}
