import type { Command } from "commander";

/** What a shell must know about a command. */
export interface Entry {
  /** The words of the command, such as "io squad list". */
  path: string;
  commands: { name: string; text: string }[];
  options: { name: string; text: string; choices: string[] }[];
  /** The allowed values of its argument, if they are a list. */
  choices: string[];
  takesFiles: boolean;
}

/** All visible commands of a program, top down. */
export function entriesOf(program: Command): Entry[] {
  const below = (command: Command, path: string): Entry[] => {
    const visible = command.createHelp().visibleCommands(command);
    const shown = visible.filter((each) => each.name() !== "help");
    const own = entryOf(command, path, shown);
    return [own, ...shown.flatMap((each) => below(each, `${path} ${each.name()}`))];
  };
  return below(program, program.name());
}

function entryOf(command: Command, path: string, commands: readonly Command[]): Entry {
  const usual = commands.find((each) => isDefault(command, each));
  const options = [command, ...(usual ? [usual] : [])].flatMap((each) => each.createHelp().visibleOptions(each));
  const unique = new Map(options.map((option) => [option.long ?? option.flags, option]));
  return {
    path,
    commands: commands.map((each) => ({ name: each.name(), text: each.description() })),
    options: [...unique].map(([name, { description, argChoices }]) => ({ name, text: description, choices: argChoices ?? [] })),
    choices: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    takesFiles: command.registeredArguments.length > 0,
  };
}

/** Commander stores the default subcommand only in a private field of the parent. */
export function isDefault(parent: Command, child: Command): boolean {
  return "_defaultCommandName" in parent && parent._defaultCommandName === child.name();
}
