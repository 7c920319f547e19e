import type { Entry } from "./completion-tree.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type ShellName = (typeof SHELLS)[number];

export const SCRIPTS: Record<ShellName, (entries: readonly Entry[]) => string> = { bash, zsh, fish };

const paths = (entries: readonly Entry[]) => entries.map(({ path }) => path).filter((path) => path.includes(" "));
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
/** The options with fixed choices; `at` is the command with the option, such as "io approval list --state". */
const optionsWithChoices = (entries: readonly Entry[]) =>
  entries.flatMap(({ path, options }) =>
    options.filter(({ choices }) => choices.length > 0).map(({ name, choices }) => ({ at: `${path} ${name}`, choices })),
  );

function bash(entries: readonly Entry[]): string {
  const words = ({ commands, choices }: Entry) => [...commands.map(({ name }) => name), ...choices].join(" ");
  const cases = entries.map(
    (entry) =>
      `    ${quoted(entry.path)}) words=${quoted(words(entry))}; options=${quoted(entry.options.map(({ name }) => name).join(" "))} ;;`,
  );
  const values = optionsWithChoices(entries).map(
    ({ at, choices }) => `    ${quoted(at)}) COMPREPLY=($(compgen -W ${quoted(choices.join(" "))} -- "$cur")); return ;;`,
  );
  return `# Completion of io and swarm for bash. For good:
#   io completion bash > ~/.local/share/bash-completion/completions/io
_io() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at=io words= options= i
  [[ \${COMP_WORDS[0]##*/} == swarm ]] && at='io swarm'
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${paths(entries).map(quoted).join("|")}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $prev" in
${values.join("\n")}
  esac
  case "$at" in
${cases.join("\n")}
  esac
  if [[ $cur == -* ]]; then words=$options; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _io io swarm
`;
}

function zsh(entries: readonly Entry[]): string {
  const described = (name: string, text: string) => quoted(`${name.replaceAll(":", "\\:")}:${text.replaceAll("\n", " ")}`);
  const cases = entries.map(({ path, commands, choices, options }) => {
    const words = [...commands.map(({ name, text }) => described(name, text)), ...choices.map((choice) => described(choice, ""))];
    return `    (${quoted(path)}) words_=(${words.join(" ")}); options_=(${options.map(({ name, text }) => described(name, text)).join(" ")}) ;;`;
  });
  const values = optionsWithChoices(entries).map(
    ({ at, choices }) => `    (${quoted(at)}) compadd -- ${choices.map(quoted).join(" ")}; return ;;`,
  );
  return `#compdef io swarm
# Completion of io and swarm for zsh. For good, into a folder of your $fpath:
#   io completion zsh > "\${fpath[1]}/_io"
_io() {
  local at=io word
  local -a words_ options_
  [[ \${words[1]:t} == swarm ]] && at='io swarm'
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${paths(entries).map(quoted).join("|")}) at="$at $word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  case "$at" in
${cases.join("\n")}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe -o 'option' options_
  elif (( \${#words_} )); then
    _describe 'command' words_
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _io ]]; then _io "$@"; else compdef _io io swarm; fi
`;
}

function fish(entries: readonly Entry[]): string {
  const lines = entries.flatMap(({ path, commands, choices, options, takesFiles }) => {
    const at = `complete -c io -c swarm -n ${quoted(`__io_at "${path}"`)}`;
    const noFiles = takesFiles && choices.length === 0 ? [] : [`${at} -f`];
    return [
      ...noFiles,
      ...commands.map(({ name, text }) => `${at} -a ${quoted(name)} -d ${quoted(text)}`),
      ...choices.map((choice) => `${at} -a ${quoted(choice)}`),
      ...options.map(({ name, text, choices: values }) => {
        const takes = values.length > 0 ? ` -x -a ${quoted(values.join(" "))}` : "";
        return `${at} -l ${quoted(name.replace(/^--/, ""))} -d ${quoted(text)}${takes}`;
      }),
    ];
  });
  return `# Completion of io and swarm for fish. For good:
#   io completion fish > ~/.config/fish/completions/io.fish
function __io_at
    set -l words (commandline -opc)
    set -l at io
    string match -q -- '*swarm' $words[1]; and set at 'io swarm'
    for word in $words[2..]
        contains -- "$at $word" ${paths(entries).map(quoted).join(" ")}; and set at "$at $word"
    end
    test "$at" = "$argv[1]"
end
${lines.join("\n")}
`;
}
