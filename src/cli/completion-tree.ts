import type { Command } from "commander";

/** A command as a shell has to know it. */
export interface Entry {
  /** The words that lead to it, such as "io squad list". */
  path: string;
  commands: { name: string; text: string }[];
  options: { name: string; text: string; choices: string[] }[];
  /** What its argument may be, where that is a list. */
  choices: string[];
  takesFiles: boolean;
}

/** Every command of a program, from the top down; hidden ones are left out. */
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

/** Commander keeps the name of the command that is meant when none is given to itself. */
function isDefault(parent: Command, child: Command): boolean {
  return "_defaultCommandName" in parent && parent._defaultCommandName === child.name();
}
