import { basename } from "node:path";
import { type Command, Option } from "commander";
import { ensureHome } from "../home/paths.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import type { ServiceKind, ServiceStatus } from "./service-manager.ts";

interface ServiceOptions extends Json {
  kind?: ServiceKind;
  print?: boolean;
  start: boolean;
}

const KIND = new Option("--kind <kind>", "for another system than this one").choices(["systemd", "launchd"]).hideHelp();

/** `io service`: starts IO at every login and after a crash. */
export function serviceCommands(program: Command, shell: Shell): void {
  const service = program
    .command("service")
    .description("have the system start IO at every login: a systemd user unit or a launchd agent");
  const open = async (kind: ServiceKind | undefined) => {
    const { kindHere, openService } = await import("./service-manager.ts");
    return openService({ env: shell.env, paths: shell.paths, kind: kind ?? kindHere() });
  };

  service
    .command("install")
    .description("write the unit or agent and start it")
    .option("--print", "only print what would be written")
    .option("--no-start", "do not start it now")
    .addOption(KIND)
    .option(...JSON_OPTION)
    .action(async ({ json, kind, print, start }: ServiceOptions) => {
      const opened = await open(kind);
      const { path, text } = opened;
      if (print) return shell.print({ path, text }, text.trimEnd(), { json });
      ensureHome(shell.paths);
      const { unseenVariables } = await import("./service-manager.ts");
      const running = shell.daemon();
      const result = await opened.install({ start: start && running === undefined });
      const status = await opened.status();
      const unseen = unseenVariables(shell.env);
      const notes = [
        ...(result.trouble === undefined ? [] : [`It is not started yet: ${result.trouble}. It starts at your next login.`]),
        ...(running && start
          ? [
              `A daemon that you started yourself still runs (pid ${running.pid}). Hand over with: io stop && ${startLine(status)}`,
            ]
          : []),
        ...(unseen.length > 0
          ? [
              `A service does not see your shell's variables (${unseen.join(", ")}): put those it needs into ${opened.spec.envFile}, one NAME=value a line, readable by you alone, or use io setup.`,
            ]
          : []),
        ...(status.kind === "systemd" ? ["To have it run while you are logged out, too: loginctl enable-linger"] : []),
      ];
      const document = { ...status, started: result.started, notes };
      const head = `${path} is written${result.started ? ", and IO runs as a service" : ""}.`;
      shell.print(
        document,
        shell.typed([head, ...notes, "io service status tells how it stands, io service remove takes it away."].join("\n")),
        { json },
      );
    });

  service
    .command("remove")
    .description("stop the service and take its file away; the data stays")
    .addOption(KIND)
    .option(...JSON_OPTION)
    .action(async ({ json, kind }: ServiceOptions) => {
      const opened = await open(kind);
      const removed = await opened.remove();
      const text = removed ? `${opened.path} is removed.` : `There is no ${opened.path}; nothing was removed.`;
      shell.print({ path: opened.path, removed }, text, { json });
    });

  service
    .command("status")
    .description("whether it is installed and runs")
    .addOption(KIND)
    .option(...JSON_OPTION)
    .action(async ({ json, kind }: ServiceOptions) => {
      const status = await (await open(kind)).status();
      shell.print(status, shell.typed(format(status)), { json });
    });
}

function format({ kind, path, installed, current, active }: ServiceStatus): string {
  if (!installed) return `No service is installed (${path} is not there). "io service install" makes one.`;
  const runs = { true: "it runs", false: "it does not run", null: `${kind} cannot be asked from here` }[`${active}`];
  const old = current ? "" : ' It is not what this version of IO would write: "io service install" renews it.';
  return `${path} is there; ${runs}.${old}`;
}

function startLine({ kind, path }: ServiceStatus): string {
  return kind === "systemd" ? `systemctl --user start ${basename(path)}` : `launchctl bootstrap gui/$(id -u) ${path}`;
}
