import type { Command } from "commander";
import { approvalLine, formatApproval } from "../protocol/approval-text.ts";
import type { Approval, KeptRule } from "../protocol/approvals.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const at = (id: string) => `/api/approvals/${encodeURIComponent(id)}`;
const ANSWERS = { allow: "io approval allow", deny: "io approval deny" };

/** `io approval`: the questions that wait for a person. */
export function approvalCommands(program: Command, shell: Shell): void {
  const approval = program.command("approval").description("what waits for your decision");

  approval
    .command("list")
    .description("what waits; with --state what was decided")
    .option("--state <state>", "waiting, allowed, denied, expired or withdrawn", "waiting")
    .option(...JSON_OPTION)
    .action(async ({ state, json }: Json & { state: string }) => {
      const query = new URLSearchParams({ state });
      const list = await shell.client().request<{ items: Approval[]; next?: string }>("GET", `/api/approvals?${query}`);
      const none = state === "waiting" ? "Nothing waits for you." : `Nothing is ${state}.`;
      const more = list.next === undefined ? [] : ["(there are more)"];
      shell.print(list, [...list.items.map(approvalLine), ...more].join("\n") || none, { json });
    });

  approval
    .command("show")
    .description("everything that is known of one")
    .argument("<id>")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const shown = await shell.client().request<Approval>("GET", at(id));
      shell.print(shown, () => formatApproval(shown, ANSWERS), options);
    });

  approval
    .command("allow")
    .description("let it be done")
    .argument("<id>")
    .option("--scope <scope>", "once, task or project; io approval show says what each would allow", "once")
    .option("--note <text>", "kept with the decision")
    .option(...JSON_OPTION)
    .action(async (id: string, { scope, note, json }: Json & { scope: string; note?: string }) => {
      const done = await shell.client().request<Approval>("POST", at(id), { decision: "allow", scope, ...(note && { note }) });
      shell.print(done, () => `${done.id} is allowed${ruleOf(done)}.`, { json });
    });

  approval
    .command("deny")
    .description("refuse it; the note is told to the model")
    .argument("<id>")
    .option("--note <text>", "what the model is told")
    .option(...JSON_OPTION)
    .action(async (id: string, { note, json }: Json & { note?: string }) => {
      const done = await shell.client().request<Approval>("POST", at(id), { decision: "deny", ...(note && { note }) });
      shell.print(done, `${done.id} is denied.`, { json });
    });

  ruleCommands(approval, shell);
}

function ruleCommands(approval: Command, shell: Shell): void {
  approval
    .command("rules")
    .description("what you allowed for a whole task or project")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await shell.client().request<{ items: KeptRule[] }>("GET", "/api/approvals/rules");
      const lines = list.items.map(({ id, scope, place, tool, match }) => `${id}  ${scope} ${place}  ${tool} "${match}"`);
      shell.print(
        list,
        lines.join("\n") || "No rules were written by decisions; those of config.json are not listed here.",
        options,
      );
    });

  approval
    .command("forget")
    .description("take back such a rule")
    .argument("<rule>")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const gone = await shell.client().request<KeptRule>("DELETE", `/api/approvals/rules/${encodeURIComponent(id)}`);
      shell.print(gone, `${gone.tool} "${gone.match}" is asked about again in ${gone.place}.`, options);
    });
}

function ruleOf({ scope, scopes }: Approval): string {
  const written = scopes.find((each) => each.scope === scope);
  return scope === "once" || !written ? "" : `, and from now on: ${written.rule}`;
}
