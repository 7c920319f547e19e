import { nearest } from "../../home/config.ts";
import { quoted } from "../../lib/quoted.ts";

/** The tools of pipeline agents; an agent's duty decides which it gets. */
export type ToolName = "shell" | "file_ops" | "file_ops_read";

/** The words that one product uses for tools in its agent files. */
export interface Vocabulary {
  of: string;
  /** Whether the product ignores the case of its words. */
  anyCase: boolean;
  /** The word that lets an agent change files. */
  edit: string;
  rows: readonly { gives: readonly ToolName[]; words: readonly string[] }[];
  /** Words for tools that pipeline agents do not have. */
  without: readonly string[];
}

/** What agent files call the tools; the first vocabulary that knows a word decides. */
export const VOCABULARIES: readonly Vocabulary[] = [
  {
    of: "IO",
    anyCase: true,
    edit: "file_ops",
    rows: [
      { gives: ["shell", "file_ops"], words: ["*", "all"] },
      { gives: ["shell"], words: ["shell"] },
      { gives: ["file_ops"], words: ["file_ops"] },
      { gives: ["file_ops_read"], words: ["file_ops_read"] },
    ],
    without: [],
  },
  {
    of: "copilot-swarm",
    anyCase: false,
    edit: "edit_file",
    rows: [
      { gives: ["shell"], words: ["run_terminal"] },
      { gives: ["file_ops"], words: ["edit_file", "write_file"] },
      { gives: ["file_ops_read"], words: ["read_file", "list_dir", "search_files"] },
    ],
    without: [],
  },
  {
    of: "Claude Code",
    anyCase: false,
    edit: "Edit",
    rows: [
      { gives: ["shell"], words: ["Bash", "PowerShell", "Monitor"] },
      { gives: ["file_ops"], words: ["Edit", "MultiEdit", "Write", "NotebookEdit"] },
      { gives: ["file_ops_read"], words: ["Read", "NotebookRead", "Grep", "Glob", "LS", "LSP"] },
    ],
    without: [
      ...["WebFetch", "WebSearch", "TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskStop"],
      ...["Task", "Agent", "Skill", "AskUserQuestion", "BashOutput", "KillBash", "KillShell", "TaskOutput", "ToolSearch"],
      ...["EnterPlanMode", "ExitPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool"],
    ],
  },
  {
    of: "GitHub Copilot",
    anyCase: true,
    edit: "edit",
    rows: [
      { gives: ["shell"], words: ["execute", "bash", "powershell"] },
      {
        gives: ["file_ops"],
        words: ["edit", "multiedit", "write", "notebookedit", "create", "str_replace", "str_replace_editor"],
      },
      { gives: ["file_ops_read"], words: ["read", "notebookread", "view", "search", "grep", "glob"] },
    ],
    without: ["agent", "custom-agent", "task", "web", "websearch", "webfetch", "web_search", "web_fetch", "todo", "todowrite"],
  },
  {
    of: "VS Code",
    anyCase: false,
    edit: "edit",
    rows: [
      {
        gives: ["shell"],
        words: [
          ...["runCommands", "runInTerminal", "run_in_terminal", "runTasks", "runTask", "run_task", "createAndRunTask"],
          ...["create_and_run_task", "runTests", "run_tests"],
        ],
      },
      {
        gives: ["file_ops"],
        words: [
          ...["editFiles", "createFile", "create_file", "createDirectory", "create_directory", "rename", "apply_patch"],
          ...["replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file", "editNotebook"],
          ...["edit_notebook_file", "createJupyterNotebook", "create_new_jupyter_notebook"],
        ],
      },
      {
        gives: ["file_ops_read"],
        words: [
          ...["codebase", "readFile", "listDirectory", "fileSearch", "textSearch", "searchResults", "usages", "changes"],
          ...["problems", "findTestFiles", "testFailure", "getNotebookSummary", "readNotebookCellOutput", "viewImage"],
          ...["semantic_search", "file_search", "grep_search", "list_code_usages", "get_changed_files", "get_errors"],
          ...["test_search", "test_failure"],
        ],
      },
    ],
    without: [
      ...["fetch", "fetch_webpage", "githubRepo", "github_repo", "todos", "manage_todo_list", "runSubagent", "think", "vscode"],
      ...["vscodeAPI", "extensions", "installExtension", "openSimpleBrowser", "browser", "runCommand", "new", "newWorkspace"],
      ...["getProjectSetupInfo", "getTerminalOutput", "awaitTerminal", "killTerminal", "terminalLastCommand"],
      ...["terminalSelection", "getTaskOutput", "runNotebooks", "runNotebookCell", "selection", "askQuestions", "memory"],
    ],
  },
];

/** Tool sets of VS Code; `set/tool` names one tool of a set. */
const SETS = ["edit", "search", "read", "execute", "runCommands", "runTasks", "runNotebooks", "vscode", "web", "agent", "todo"];

/** The meaning of the tool words in an agent file. */
export interface ToolsRead {
  tools: ToolName[];
  /** The word by which this file would let its agent change files. */
  edit: string;
  /** What a person should know about the words. */
  notes: string[];
}

export function readToolWords(words: readonly string[]): ToolsRead {
  const tools = new Set<ToolName>();
  const [unknown, without, bound]: [string[], string[], string[]] = [[], [], []];
  const uses = new Map<Vocabulary, number>();
  for (const word of words) {
    const [name, limit] = withoutLimit(word);
    const found = find(name);
    if (found) uses.set(found.in, (uses.get(found.in) ?? 0) + 1);
    if (found?.gives) for (const tool of found.gives) tools.add(tool);
    if (found?.gives && limit) bound.push(word);
    if (found && !found.gives) without.push(word);
    if (!found) (isForeign(name) ? without : unknown).push(word);
  }
  const [most] = [...uses].sort(([, a], [, b]) => b - a);
  return { tools: [...tools], edit: most?.[0].edit ?? "edit", notes: notesOn({ unknown, without, bound }) };
}

/** Splits a front matter's tools that are listed on one line; a comma inside brackets does not split. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  for (const piece of text.split(",")) {
    const last = words.at(-1);
    if (last !== undefined && last.lastIndexOf("(") > last.lastIndexOf(")")) words[words.length - 1] = `${last},${piece}`;
    else words.push(piece);
  }
  return words.map((word) => word.trim());
}

interface Found {
  in: Vocabulary;
  /** Missing if pipeline agents have no such tool. */
  gives?: readonly ToolName[];
}

function find(word: string): Found | undefined {
  const [set = "", ...rest] = word.split("/");
  if (rest.length === 0 || !SETS.includes(set)) return findPlain(word);
  const one = findPlain(rest.join("/"));
  return one && one.in.of !== "IO" ? one : findPlain(set);
}

function findPlain(word: string): Found | undefined {
  for (const vocabulary of VOCABULARIES) {
    const same = (each: string) => each === word || (vocabulary.anyCase && each === word.toLowerCase());
    const row = vocabulary.rows.find(({ words }) => words.some(same));
    if (row) return { in: vocabulary, gives: row.gives };
    if (vocabulary.without.some(same)) return { in: vocabulary };
  }
  return undefined;
}

/** Claude Code's `Bash(git:*)`: a tool and a restriction of it. */
function withoutLimit(word: string): [string, boolean] {
  const name = /^([A-Za-z]+)\(.*\)$/s.exec(word)?.[1];
  return name === undefined ? [word, false] : [name, true];
}

/** Whether a word names a tool of an MCP server or of an extension. */
function isForeign(word: string): boolean {
  return word.startsWith("mcp__") || /^[^/\s]+\/[^\s]+$/.test(word);
}

/** How many words a note lists. */
const MOST_LISTED = 12;

function notesOn({ unknown, without, bound }: Record<"unknown" | "without" | "bound", readonly string[]>): string[] {
  const left = (words: readonly string[], why: string) => {
    const several = words.length > 1;
    const what = several ? "are no tools of a pipeline agent and are" : "is no tool of a pipeline agent and is";
    return words.length === 0 ? [] : [`${listed(words)} ${what} left out (${why})`];
  };
  const known = VOCABULARIES.flatMap(({ rows }) => rows.flatMap(({ words }) => words));
  const [only, second] = unknown;
  const near = only === undefined || second !== undefined ? undefined : nearest(only, known);
  return [
    ...left(unknown, `there are shell and file_ops${near === undefined ? "" : `; did you mean "${near}"?`}`),
    ...left(without, "it has files and a shell, and neither the web, to-do lists, MCP servers nor other agents"),
    ...(bound.length === 0 ? [] : [`${listed(bound)}: what stands in brackets is not kept to, the whole tool is given`]),
  ];
}

function listed(words: readonly string[]): string {
  const more = words.length - MOST_LISTED;
  const shown = words.slice(0, MOST_LISTED).map((word) => quoted(word, 60));
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
