import { Command, CommanderError, Option } from "commander";
import { MODES } from "../home/mode-words.ts";
import { ExitCode } from "../lib/errors.ts";
import { packageVersion } from "../lib/version.ts";
import { acpCommand } from "./acp.ts";
import { approvalCommands } from "./approval.ts";
import { backgroundCommands } from "./background.ts";
import { backupCommands } from "./backup.ts";
import { budgetCommands } from "./budget.ts";
import { isSpokenTo, openPlainChat } from "./chat.ts";
import type { ChatOptions } from "./chat-options.ts";
import { cleanCommand } from "./clean.ts";
import { clusterCommands } from "./cluster.ts";
import { completionCommand } from "./completion.ts";
import { configCommands } from "./config.ts";
import { connectCommand } from "./connect.ts";
import { conversationCommands } from "./conversation.ts";
import { daemonCommands } from "./daemon.ts";
import { digestCommand } from "./digest.ts";
import { doctorCommand } from "./doctor.ts";
import { explainUsage, refuse } from "./groups.ts";
import { logsCommand } from "./logs.ts";
import { mcpCommand } from "./mcp.ts";
import { createShell, guardOutput, report, reportUsage, type Shell } from "./output.ts";
import { prCommand } from "./pr.ts";
import { rulesCommands } from "./rules.ts";
import { scheduleCommands } from "./schedule.ts";
import { sendCommand } from "./send.ts";
import { serve } from "./serve.ts";
import { serviceCommands } from "./service.ts";
import { setupCommand } from "./setup.ts";
import { skillCommands } from "./skill.ts";
import { squadCommands } from "./squad.ts";
import { swarmCommands } from "./swarm.ts";
import { taskCommands } from "./task.ts";
import { telegramCommands } from "./telegram.ts";
import { tokenCommands } from "./token.ts";
import { tourCommand } from "./tour.ts";
import { undoCommands } from "./undo.ts";
import { updateCommand } from "./update.ts";
import { usageCommand } from "./usage.ts";
import { watchCommands } from "./watch.ts";
import { webCommand } from "./web.ts";
import { wikiCommands } from "./wiki.ts";
import { workerCommands } from "./worker.ts";

/** Runs one command line. `swarm …` is short for `io swarm …`. */
export async function main(program: "io" | "swarm", args: readonly string[]): Promise<void> {
  guardOutput();
  const shell = createShell();
  if (args.length === 2 && args.includes("--version") && args.includes("--json"))
    return shell.print({ version: packageVersion() }, packageVersion(), { json: true });
  const command = buildProgram(shell, program);
  try {
    await command.parseAsync(program === "swarm" ? ["swarm", ...args] : [...args], { from: "user" });
  } catch (error) {
    const json = args.includes("--json");
    if (!(error instanceof CommanderError)) report(error, { json });
    else if (error.exitCode === 0) process.exitCode = ExitCode.done;
    else reportUsage(error.message.replace(/^error: /, ""), { json });
  }
}

interface RootOptions extends ChatOptions {
  daemon?: boolean;
  selfEdit?: boolean;
  background?: boolean;
  untilIdle?: boolean;
}

/** Every command of `io`, ready to parse; those of `swarm` are named as they were typed. */
export function buildProgram(shell: Shell, typed: "io" | "swarm" = "io"): Command {
  const program = new Command("io")
    .description("IO answers, remembers, and puts teams to work. Without a command it opens a chat.")
    .version(packageVersion(), "--version", "print the version")
    .option("--daemon", "serve in the foreground until stopped")
    .option("--self-edit", "with --daemon: let IO change its own code, for this life only")
    .option("-c, --continue", "chat in the conversation that was used last in this project")
    .option("--resume [name]", "chat in a conversation that is there; without a name you choose one")
    .option("--conversation <name>", "chat in the conversation with this name, or begin it")
    .addOption(new Option("--mode <mode>", "give that conversation this mode").choices(MODES))
    .addOption(new Option("--background").hideHelp())
    .addOption(new Option("--until-idle").hideHelp())
    .showHelpAfterError("(io --help lists the commands)")
    .exitOverride()
    // Subcommands have options with the same names.
    .enablePositionalOptions()
    .action(async (options: RootOptions, { args }: Command) => {
      if (args.length > 0) refuse(program, args);
      const wanted = [options.continue, options.resume, options.conversation].filter((each) => each !== undefined);
      const isChat = wanted.length > 0 || options.mode !== undefined;
      if (wanted.length > 1) program.error("error: only one of --continue, --resume and --conversation can be given");
      if (options.daemon || !(isChat || (await isSpokenTo(shell)))) await serve(shell, options);
      else await openPlainChat(shell, options);
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
  undoCommands(program, shell);
  backgroundCommands(program, shell);
  budgetCommands(program, shell);
  configCommands(program, shell);
  scheduleCommands(program, shell);
  digestCommand(program, shell);
  rulesCommands(program, shell);
  usageCommand(program, shell);
  telegramCommands(program, shell);
  mcpCommand(program, shell);
  acpCommand(program, shell);
  connectCommand(program, shell);
  tokenCommands(program, shell);
  clusterCommands(program, shell);
  workerCommands(program, shell);
  webCommand(program, shell);
  wikiCommands(program, shell);
  skillCommands(program, shell);
  swarmCommands(program, shell);
  prCommand(program, shell);
  watchCommands(program, shell);
  cleanCommand(program, shell);
  backupCommands(program, shell);
  serviceCommands(program, shell);
  completionCommand(program, shell);
  for (const command of program.commands) explainUsage(command, command.name() === typed ? "" : "io ");
  // Only for the program itself: its commands refuse unknown arguments.
  return program.allowExcessArguments().allowUnknownOption();
}
