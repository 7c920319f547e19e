import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import type { FoundSkill, Skill } from "../protocol/skills.ts";
import { askYesNo, confirm } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { whileWorking } from "./working.ts";

type SkillList = { items: Skill[] };
type Shown = { skill: Skill; text: string };

/** `io skill`: skills. Only here does a person enable them. */
export function skillCommands(program: Command, shell: Shell): void {
  const skill = program.command("skill").description("skills: folders with a SKILL.md that teach IO something");

  skill
    .command("list")
    .description("the installed skills")
    .option(...JSON_OPTION)
    .action(async ({ json }: Json) => {
      const list = await shell.client().request<SkillList>("GET", "/api/skills");
      const text = list.items.map((one) => `${one.slug} (${stateOf(one)})  ${one.description}`);
      shell.print(list, () => text.join("\n") || "No skills are installed.", { json });
    });

  skill
    .command("add")
    .description("install the skills of a git repository, show them, and switch them on if you agree")
    .argument("<repository>", "an address, owner/repo, or a folder of this machine")
    .option("--yes", "switch them on without asking")
    .option(...JSON_OPTION)
    .action(async (given: string, { json, yes }: Json & { yes?: boolean }) => {
      const client = shell.client();
      const installed = await whileWorking(shell, "fetching the repository", () =>
        client.request<SkillList>("POST", "/api/skills", { repoUrl: addressOf(given), enable: false }),
      );
      for (const one of installed.items) shell.note(describe(one));
      const many = installed.items.length === 1 ? "it" : "them";
      const agreed = yes || (shell.isTerminal && (await askYesNo(`Switch ${many} on?`)));
      const items = agreed ? await Promise.all(installed.items.map((one) => switchOn(shell, one))) : installed.items;
      const names = items.map(({ slug }) => slug).join(", ");
      const hint = items.map(({ slug }) => `io skill enable ${slug}`).join("; ");
      shell.print({ items }, agreed ? `On: ${names}.` : `Installed and off: ${names}. To switch ${many} on: ${hint}`, { json });
    });

  skill
    .command("show")
    .description("a skill, its warnings, and the text the model reads")
    .argument("<slug>")
    .option(...JSON_OPTION)
    .action(async (slug: string, { json }: Json) => {
      const shown = await shell.client().request<Shown>("GET", route(slug));
      shell.print(shown, () => `${describe(shown.skill)}\n\n${shown.text.trimEnd()}`, { json });
    });

  skill
    .command("enable")
    .description("show a skill as it is now, and switch it on")
    .argument("<slug>")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (slug: string, { json, yes }: Json & { yes?: boolean }) => {
      const shown = await shell.client().request<Shown>("GET", route(slug));
      shell.note(`${describe(shown.skill)}\n\n${shown.text.trimEnd()}\n`);
      const agreed = yes || !shell.isTerminal || (await askYesNo("Switch it on?"));
      const changed = agreed ? await switchOn(shell, shown.skill) : shown.skill;
      shell.print(changed, `${changed.slug} is ${changed.enabled ? "on" : "off"}.`, { json });
    });

  skill
    .command("disable")
    .description("switch a skill off")
    .argument("<slug>")
    .option(...JSON_OPTION)
    .action(async (slug: string, { json }: Json) => {
      const changed = await shell.client().request<Skill>("POST", `${route(slug)}/disable`);
      shell.print(changed, `${changed.slug} is ${changed.enabled ? "on" : "off"}.`, { json });
    });

  skill
    .command("remove")
    .description("remove a skill")
    .argument("<slug>")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (slug: string, { json, yes }: Json & { yes?: boolean }) => {
      const client = shell.client();
      const { items } = await client.request<{ items: Skill[] }>("GET", "/api/skills");
      // Nobody is asked about what is not there.
      if (items.some((each) => each.slug === slug)) await confirm(shell, `Remove the skill ${slug} and its files?`, yes);
      const removed = await client.request<Skill>("DELETE", route(slug));
      shell.print(removed, `Removed ${removed.slug}.`, { json });
    });

  skill
    .command("search")
    .description("search the skills registry")
    .argument("<query>")
    .option(...JSON_OPTION)
    .action(async (q: string, { json }: Json) => {
      const found = await shell
        .client()
        .request<{ items: FoundSkill[] }>("GET", `/api/skills/search?${new URLSearchParams({ q })}`);
      const lines = found.items.map(({ name, description, url }) => `${name}  ${url}\n    ${description}`);
      shell.print(found, () => lines.join("\n") || `The registry knows no skill for "${q}".`, { json });
    });
}

/** Enables a skill as it was shown; if it has changed since, it stays off. */
function switchOn(shell: Shell, { slug, hash }: Skill): Promise<Skill> {
  const query = hash === null ? "" : `?${new URLSearchParams({ hash })}`;
  return shell.client().request<Skill>("POST", `${route(slug)}/enable${query}`);
}

function stateOf({ enabled, changed }: Skill): string {
  return enabled ? "on" : changed ? "off: changed since it was switched on" : "off";
}

function describe(skill: Skill): string {
  const { slug, name, description, url, commit, warnings } = skill;
  return [
    `${slug} (${stateOf(skill)}): ${name === slug ? "" : `${name}. `}${description}`,
    ...(url === null ? [] : [`  from ${url}${commit === null ? "" : `, commit ${commit}`}`]),
    ...warnings.map(({ kind, file, line, text }) => `  warning, ${kind}: ${file}:${line}: ${text}`),
    ...(warnings.length === 0 ? [] : ["  Look at these places before you switch it on."]),
  ].join("\n");
}

/** The daemon has another working folder, so a relative path is made absolute here. */
function addressOf(given: string): string {
  if (given === "~" || given.startsWith("~/")) return join(homedir(), given.slice(1));
  return given === "." || given === ".." || /^\.\.?\//.test(given) ? resolve(given) : given;
}

function route(slug: string): string {
  return `/api/skills/${encodeURIComponent(slug)}`;
}
