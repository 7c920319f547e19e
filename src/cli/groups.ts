import { type Command, Option } from "commander";
import { nearest } from "../home/config.ts";
import { isDefault } from "./completion-tree.ts";

/** Usage errors refer to the help of the command in question, not of the whole program, and name the commands of a group. */
export function explainUsage(command: Command, above: string): void {
  const path = `${above}${command.name()}`;
  command.exitOverride().showHelpAfterError(`(${path} --help shows how it is used)`);
  if (command.commands.length > 0) explainGroup(command, path);
  for (const each of command.commands) explainUsage(each, `${path} `);
}

function explainGroup(group: Command, path: string): void {
  const usual = group.commands.find((each) => isDefault(group, each)) ?? (hasAction(group) ? group : undefined);
  if (usual === undefined) needCommand(group, path);
  const runs = usual ?? group;
  // A word that is none of its commands is called unknown, not one too many.
  if (runs.registeredArguments.length > 0) return;
  runs.allowExcessArguments().hook("preAction", (_, action) => {
    if (action === runs && action.args.length > 0) refuse(group, action.args, path);
  });
}

/** Commander keeps a command's action in a private field. */
const hasAction = (command: Command): boolean => "_actionHandler" in command && command._actionHandler !== null;

/** A group that does nothing by itself shows its help, or says as JSON what it needs. `--json` may stand before its command. */
function needCommand(group: Command, path: string): void {
  group
    .helpCommand(true)
    .addOption(new Option("--json").hideHelp())
    .hook("preSubcommand", (_, chosen) => {
      if (group.opts<{ json?: boolean }>().json) chosen.setOptionValue("json", true);
    })
    .action(({ json }: { json?: boolean }) => {
      if (!json) group.help({ error: true });
      group.error(`error: ${path} needs a command: ${namesOf(group)}`);
    });
}

/** Refuses a word that is no command, with the nearest one; `path` is how a group is typed. */
export function refuse(program: Command, args: readonly string[], path?: string): never {
  const typed = args.find((arg) => !arg.startsWith("-"));
  if (typed === undefined) program.error(`error: unknown option '${args[0]}'`);
  const near = nearest(
    typed,
    commandsOf(program).map((command) => command.name()),
  );
  const hint = near ? `\n(Did you mean ${near}?)` : "";
  const others = path === undefined ? "" : `\n(The commands of ${path}: ${namesOf(program)})`;
  program.error(`error: unknown command '${typed}'${hint}${others}`);
}

const commandsOf = (group: Command): readonly Command[] =>
  group
    .createHelp()
    .visibleCommands(group)
    .filter((command) => command.name() !== "help");

const namesOf = (group: Command): string =>
  commandsOf(group)
    .map((command) => command.name())
    .join(", ");
