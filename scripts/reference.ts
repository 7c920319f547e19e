import type { Argument, Command, Option } from "commander";
import { z } from "zod";
import { describeApi } from "../src/channels/http/openapi.ts";
import { createHttp, type HttpDeps } from "../src/channels/http/server.ts";
import { buildProgram } from "../src/cli/io.ts";
import { createShell } from "../src/cli/output.ts";
import { orchestratorTools, type ToolDeps } from "../src/daemon/tools.ts";
import { Config, SECRET_KEYS } from "../src/home/config.ts";
import { ExitCode } from "../src/lib/errors.ts";
import { type ErrorStatus, errorBody } from "../src/protocol/errors.ts";
import { EVENT_DATA } from "../src/protocol/events.ts";
import { fileOps } from "../src/tools/file-ops.ts";
import { backgroundTools, shell } from "../src/tools/shell.ts";
import { todo } from "../src/tools/todo.ts";
import type { Tool } from "../src/tools/tool.ts";
import { EVENTS, EXIT_CODES, STATUS_CODES, TURN_CODES, VARIABLES, WORK_CODES } from "./reference-words.ts";

type Json = Record<string, unknown>;
interface Schema extends Json {
  type?: string | string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  description?: string;
  $ref?: string;
}

/** Every page of docs/reference that is generated from the code, by its file name. */
export function referencePages(): Record<string, string> {
  return {
    "commands.md": commands(),
    "config.md": config(),
    "environment.md": environment(),
    "routes.md": routes(),
    "events.md": events(),
    "tools.md": tools(),
    "errors.md": errors(),
  };
}

function commands(): string {
  const program = buildProgram(createShell({ HOME: "/home/you" }));
  const [top, ...groups] = [program, ...visibleCommands(program)];
  const sections = groups.flatMap((group) => sectionsOf(group, `io ${group.name()}`, "##"));
  return page(
    "Commands",
    "Every command and flag. `swarm …` is short for `io swarm …`; there, `run` may be left out. `--json` prints the document of the API route with the same purpose. [Exit codes](errors.md#exit-codes) tell scripts how a command ended.",
    ["## io", sentence(top!.description()), ...describeCommand(top!, "io"), ...sections],
  );
}

function visibleCommands(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== "help");
}

function sectionsOf(command: Command, path: string, mark: string): string[] {
  const inner = visibleCommands(command).flatMap((each) => sectionsOf(each, `${path} ${each.name()}`, "###"));
  return [`${mark} ${path}`, sentence(command.description()), ...describeCommand(command, path), ...inner];
}

function describeCommand(command: Command, path: string): string[] {
  const taken = command.registeredArguments;
  const usage = [path, ...taken.map(argumentWords)].join(" ");
  const options = command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== "--help");
  const rows = [
    ...taken.filter(({ description }) => description !== "").map((each) => [code(argumentWords(each)), argumentText(each)]),
    ...options.map((each) => [code(each.flags), optionText(each)]),
  ];
  const isGroup = visibleCommands(command).length > 0;
  return [...(isGroup ? [] : [fence("text", usage)]), ...(rows.length > 0 ? [table(["argument or flag", "meaning"], rows)] : [])];
}

function argumentWords(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

const argumentText = ({ description, argChoices }: Argument): string => withChoices(description, argChoices);

function optionText({ description, argChoices, defaultValue, mandatory }: Option): string {
  const value = defaultValue === undefined || defaultValue === false ? "" : ` (default ${JSON.stringify(defaultValue)})`;
  return `${withChoices(description, argChoices)}${value}${mandatory ? " (required)" : ""}`;
}

function withChoices(text: string, choices: readonly string[] | undefined): string {
  return choices ? `${text} (${choices.join(", ")})` : text;
}

function config(): string {
  const schema = jsonSchema(Config);
  const rows = configRows(schema, "");
  return page(
    "config.json",
    "Every key of `config.json` in the data folder. All keys are optional unless marked. An unknown key or a wrong value keeps the daemon from starting (exit code 2), with a message that names it. [Configuration](../configuration.md) is the guide.",
    [table(["key", "type", "default", "meaning"], rows)],
  );
}

function configRows(schema: Schema, prefix: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const path = `${prefix}${name}`;
    const value = "default" in each && !isRecord(each.default) ? code(JSON.stringify(each.default)) : "";
    const secret = (SECRET_KEYS as readonly string[]).includes(path) ? " Secret: never sent back." : "";
    const isRequired = prefix !== "" && schema.required?.includes(name) && !("default" in each) ? " Required." : "";
    const below = each.items?.properties ? configRows(each.items, `${path}[].`) : configRows(each, `${path}.`);
    const own = each.properties ? "object" : typeOf(each);
    return [[code(path), own, value, `${sentence(each.description ?? "")}${isRequired}${secret}`.trim()], ...below];
  });
}

function environment(): string {
  const groups = Object.entries(VARIABLES).flatMap(([title, { intro, variables }]) => [
    `## ${title}`,
    ...(intro ? [intro] : []),
    table(
      ["variable", "meaning"],
      Object.entries(variables).map(([name, meaning]) => [code(name), meaning]),
    ),
  ]);
  return page(
    "Environment variables",
    "Every variable that IO reads. A variable that is set wins over `config.json` for that start.",
    groups,
  );
}

interface Operation {
  operationId: string;
  tags: string[];
  summary?: string;
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema; description?: string }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

function routes(): string {
  // Routes only describe themselves here, so their dependencies are not needed.
  const { app } = createHttp({} as unknown as HttpDeps);
  const described = describeApi(app, "") as unknown as {
    tags: { name: string; description: string }[];
    paths: Record<string, Record<string, Operation>>;
  };
  const all = Object.entries(described.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, ...operation })),
  );
  const sections = described.tags
    .toSorted((one, other) => one.name.localeCompare(other.name))
    .flatMap(({ name, description }) => {
      const rows = all
        .filter(({ tags }) => tags.includes(name))
        .map((each) => [code(each.route), routeText(each), requestOf(each), responseOf(each)]);
      return [`## ${name}`, description, table(["route", "does", "takes", "answers"], rows)];
    });
  return page(
    "Routes",
    "Every route of the HTTP API. `GET /api/openapi.json` has the full schemas; [the API](../api.md) explains how to sign in and how to follow events. A name with `?` is optional. Errors look the same [everywhere](errors.md).",
    sections,
  );
}

const routeText = ({ summary = "", operationId }: Operation): string => `${sentence(summary)} (${code(operationId)})`;

function requestOf({ parameters = [], requestBody }: Operation): string {
  const named = parameters
    .filter((each) => each.in !== "path")
    .map(({ name, required, ...each }) => `${each.in} ${code(`${name}${required ? "" : "?"}`)}`);
  const body = Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) =>
    type === "application/json" ? `body ${fieldsOf(schema)}` : `body ${code(type)}`,
  );
  return [...named, ...body].join("; ");
}

function responseOf({ responses }: Operation): string {
  return Object.entries(responses)
    .filter(([status]) => !status.includes("X"))
    .map(([status, { content }]) => {
      const schema = content?.["application/json"]?.schema;
      return `${status}${schema ? ` ${fieldsOf(schema)}` : ""}`;
    })
    .join("; ");
}

/** The names of an object's fields, or its type. */
function fieldsOf(schema: Schema): string {
  if (schema.$ref) return code(schema.$ref.replace(/^.*\//, ""));
  if (!schema.properties) return typeOf(schema);
  const names = Object.keys(schema.properties).map((name) => `${name}${schema.required?.includes(name) ? "" : "?"}`);
  return names.length === 0 ? "nothing" : code(`{${names.join(", ")}}`);
}

function events(): string {
  const sections = Object.entries(EVENT_DATA).flatMap(([name, data]) => {
    const schema = jsonSchema(data as z.ZodType, "output");
    const rows = Object.entries(schema.properties ?? {}).map(([field, each]) => [
      code(`${field}${schema.required?.includes(field) ? "" : "?"}`),
      typeOf(each),
    ]);
    return [`## ${name}`, EVENTS[name as keyof typeof EVENTS], table(["field", "type"], rows)];
  });
  return page(
    "Events",
    "Every event of `GET /api/events`, with the fields of its `data`. A field with `?` may be missing. An event of one conversation also carries `conversation`. [The API](../api.md#events) explains how to follow and replay them.",
    sections,
  );
}

function tools(): string {
  const all: Tool[] = [...new Map(orchestratorTools(toolDeps()).map((each) => [each.name, each])).values()];
  const sections = all
    .toSorted((one, other) => one.name.localeCompare(other.name))
    .flatMap(({ name, description, schema, kind }) => {
      const json = jsonSchema(schema);
      const rows = Object.entries(json.properties ?? {}).map(([field, each]) => {
        const isOptional = !json.required?.includes(field) || "default" in each;
        return [code(`${field}${isOptional ? "?" : ""}`), typeOf(each), each.description ?? ""];
      });
      const effect = typeof kind === "function" ? "Changes something, depending on its arguments." : EFFECT[kind];
      const fields = rows.length > 0 ? [table(["argument", "type", "meaning"], rows)] : ["It takes no arguments."];
      return [`## ${name}`, `${description} ${effect}`, ...fields];
    });
  return page(
    "Tools",
    "Every tool that IO offers its models, with the description the model reads. Agents of a squad have `shell` (with `shell_output` and `shell_stop`), `file_ops`, `todo`, `conversation_search`, the wiki tools but for deleting, and `squad_log_decision` for their own squad; agents of a pipeline have `shell` and `file_ops` as their [duty](../swarm.md) allows. Every call passes the same [gate](../security.md). [Files and commands](../tools.md) explains `file_ops` and commands in the background.",
    sections,
  );
}

const EFFECT = { read: "Only looks.", effect: "Changes something." };

/** Tools only describe themselves here, so no answer of their dependencies is ever used. */
function toolDeps(): ToolDeps {
  const nothing: unknown = new Proxy(() => nothing, { get: () => nothing });
  const hands = nothing as Parameters<typeof shell>[0] & Parameters<typeof fileOps>[0];
  const machine = {
    shell: shell(hands),
    background: backgroundTools(hands),
    files: fileOps({ guard: hands.guard, write: true }),
    todo: todo(nothing as Parameters<typeof todo>[0]),
  };
  const core = new Proxy({ machine } as Json, { get: (own, name) => own[String(name)] ?? nothing });
  return new Proxy({ core } as Json, { get: (own, name) => own[String(name)] ?? nothing }) as unknown as ToolDeps;
}

function errors(): string {
  const statuses = Object.entries(STATUS_CODES).map(([status, meaning]) => {
    const { error } = errorBody(Number(status) as ErrorStatus, "");
    return [status, code(error.code), meaning];
  });
  const named = (codes: Record<string, string>) => Object.entries(codes).map(([name, meaning]) => [code(name), meaning]);
  return page(
    "Errors",
    'A failed request answers `{"error": {"code", "message"}}`. Compare the code; the message is for people and may change.',
    [
      "## Status codes",
      table(["status", "code", "meaning"], statuses),
      "A full disk answers 503 with the code `disk_full`.",
      "## Failed turns",
      "The `error.code` of a message, task or step whose turn failed.",
      table(["code", "meaning"], named(TURN_CODES)),
      "## Failed work",
      "Codes that messages, tasks and jobs on workers add to those of turns.",
      table(["code", "meaning"], named(WORK_CODES)),
      "## Exit codes",
      table(
        ["code", "name", "meaning"],
        Object.entries(ExitCode).map(([name, value]) => [String(value), code(name), EXIT_CODES[name as keyof typeof ExitCode]]),
      ),
      'With `--json`, a command prints the same document; what no route has seen uses the name of the exit code (`"usage"`, `"unreachable"`, …).',
    ],
  );
}

function jsonSchema(schema: z.ZodType, io: "input" | "output" = "input"): Schema {
  const made = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" }) as Schema & {
    $defs?: Record<string, Schema>;
  };
  // A named schema is a reference to its definition, even at the top level.
  return made.$ref === undefined ? made : made.$defs![made.$ref.replace("#/$defs/", "")]!;
}

/** Describes a schema's type in a few words. */
function typeOf(schema: Schema): string {
  if (schema.$ref) return code(schema.$ref.replace(/^.*\//, ""));
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => code(JSON.stringify(value))).join(" or ");
  const some = schema.anyOf ?? schema.oneOf;
  if (some) return [...new Set(some.map(typeOf))].join(" or ");
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  if (schema.type === "array") return `list of ${schema.items ? typeOf(schema.items) : "anything"}`;
  if (schema.properties) return fieldsOf(schema);
  if (schema.type === "object") {
    const { additionalProperties: values } = schema;
    return isRecord(values) && Object.keys(values).length > 0 ? `map of ${typeOf(values)}` : "object";
  }
  return schema.type ?? "anything";
}

function page(title: string, intro: string, blocks: readonly string[]): string {
  const origin = "<!-- Written by `npm run docs` from the code. Do not edit. -->";
  return `${[origin, `# ${title}`, intro, ...blocks.filter((block) => block !== "")].join("\n\n")}\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

const isRecord = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const code = (text: string): string => `\`${text}\``;
const fence = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;

/** Adds a capital letter and a full stop. */
function sentence(text: string): string {
  if (text === "") return "";
  const [first = "", ...rest] = text;
  return `${first.toUpperCase()}${rest.join("")}${/[.!?:]$/.test(text) ? "" : "."}`;
}
