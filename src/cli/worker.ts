import type { Command } from "commander";
import { workerLine } from "../client/status.ts";
import type { Invited, Worker, WorkerList } from "../protocol/workers.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import type { JoinOptions } from "./worker-join.ts";

const at = (name: string) => `/api/workers/${encodeURIComponent(name)}`;

/** `io worker`: hosts that work for this one, and this host as a worker of another. */
export function workerCommands(program: Command, shell: Shell): void {
  const worker = program.command("worker").description("hosts that do work for this one");

  worker
    .command("invite")
    .description("a url and a code with which one host can join: good once, for ten minutes")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const { url, code } = await shell.client().request<Invited>("POST", "/api/workers/invite", {});
      const text = `On the other host, within ten minutes:\n\n  io worker join ${url} --code ${code}\n\nThe line is a secret until it was used.`;
      shell.print({ url, code }, text, options);
    });

  worker
    .command("join")
    .description("work for the host that made the invitation, in the foreground; without a url, as whom this home joined before")
    .argument("[url]", 'as "io worker invite" printed it there')
    .option("--code <code>", "as printed there; taken from IO_WORKER_CODE if that is set")
    .option("--name <name>", "what it is called there (this host's name)")
    .option("--labels <a,b>", "what it is good for, besides anything")
    .option("--capacity <n>", "how many jobs it does at once (its cores)")
    .option("--ca <file>", "the authority of a server of one's own, as PEM")
    .option(...JSON_OPTION)
    .action(async (url: string | undefined, options: JoinOptions) => {
      const { joinAndWork } = await import("./worker-join.ts");
      await joinAndWork(shell, url, options);
    });

  worker
    .command("list")
    .description("who is there, and how busy")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await shell.client().request<WorkerList>("GET", "/api/workers");
      const none = shell.typed('There are no workers. "io worker invite" adds one.');
      shell.print(list, list.items.map((each) => workerLine(each)).join("\n") || none, options);
    });

  worker
    .command("drain")
    .description("have it finish what it has, and take no more")
    .argument("<name>")
    .option(...JSON_OPTION)
    .action(async (name: string, options: Json) => {
      const drained = await shell.client().request<Worker>("POST", `${at(name)}/drain`, {});
      shell.print(drained, `${name} finishes what it has and takes no more.`, options);
    });

  worker
    .command("revoke")
    .description("take its key away; it is cut off at once")
    .argument("<name>")
    .option(...JSON_OPTION)
    .action(async (name: string, options: Json) => {
      const revoked = await shell.client().request<{ name: string; revoked: true }>("DELETE", at(name));
      shell.print(revoked, `${name} is revoked. What it was doing counts no more.`, options);
    });
}
