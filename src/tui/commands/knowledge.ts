import { UserError } from "../../lib/errors.ts";
import { formatPageChange, type PageReview } from "../../protocol/page-review.ts";
import type { Rule } from "../../protocol/rules.ts";
import type { Skill } from "../../protocol/skills.ts";
import type { UsageSummary } from "../../protocol/usage.ts";
import { brief, type Command, columns, time } from "./command.ts";

/** Commands about IO's knowledge, its model and the usage. */
export const knowledgeCommands: readonly Command[] = [
  {
    name: "wiki",
    takes: "<query>",
    help: "pages of the wiki that hold these words",
    async run({ client, rest }) {
      if (rest === "") throw new UserError("/wiki needs words to look for.");
      const query = `/api/wiki/search?limit=10&q=${encodeURIComponent(rest)}`;
      const { items } = await client.request<{ items: { path: string; title: string; snippet: string }[] }>("GET", query);
      const found = items.map(({ path, title, snippet }) => `${path}  ${title}\n    ${brief(snippet, 100)}`);
      return found.join("\n") || `No page holds "${rest}".`;
    },
  },
  {
    name: "skills",
    help: "the skills that are installed",
    async run({ client }) {
      const { items } = await client.request<{ items: Skill[] }>("GET", "/api/skills");
      const rows = items.map(({ slug, enabled, description }) => [slug, enabled ? "on" : "off", brief(description, 80)]);
      return columns(rows) || "No skills are installed.";
    },
  },
  {
    name: "model",
    takes: "[name]",
    help: "the model that answers; with a name, another one from now on",
    async run({ client, args: [name] }) {
      const [{ items }, { engine }] = await Promise.all([
        client.request<{ items: { id: string; name: string }[] }>("GET", "/api/models"),
        client.request<{ engine: { model: string; kind: string } }>("GET", "/api/status"),
      ]);
      if (name === undefined) {
        const rows = items.map(({ id, name: title }) => [id === engine.model ? "›" : " ", id, title === id ? "" : title]);
        return [`${engine.kind} answers with ${engine.model}.`, columns(rows)].filter(Boolean).join("\n");
      }
      if (items.length > 0 && !items.some(({ id }) => id === name))
        throw new UserError(`There is no model "${name}"; /model lists them.`);
      await client.request("PATCH", "/api/config", { defaultModel: name });
      const now = await client.request<{ engine: { model: string } }>("GET", "/api/status");
      return now.engine.model === name
        ? `${name} answers from now on.`
        : `${name} is written down as the default model; ${now.engine.model}, which the provider or the environment names, goes before it.`;
    },
  },
  {
    name: "review",
    takes: "[keep|revert <path>]",
    help: "what agents wrote into the wiki since you last looked; one key decides each page",
    async run({ client, args: [verdict, path] }) {
      if (verdict !== undefined) {
        if ((verdict !== "keep" && verdict !== "revert") || path === undefined)
          throw new UserError("Say what to do with which page: /review keep <path>, or /review revert <path>.");
        const done = await client.request<PageReview>("POST", "/api/wiki/review", { path, verdict });
        return `${verdict === "keep" ? "Kept" : "Reverted"} ${done.path}.`;
      }
      const { items } = await client.request<{ items: PageReview[] }>("GET", "/api/wiki/review");
      const rows = items.map((item) => [item.path, formatPageChange(item), time(item.at)]);
      return columns(rows) || "Nobody changed anything since you last looked.";
    },
  },
  {
    name: "rules",
    help: "what you ruled once and for all (io rules adds and removes)",
    async run({ client }) {
      const { items } = await client.request<{ items: Rule[] }>("GET", "/api/rules");
      return items.map(({ id, text }) => `${id}  ${text}`).join("\n") || "There are no rules.";
    },
  },
  {
    name: "usage",
    help: "what models have used, by model",
    async run({ client }) {
      const { total, items } = await client.request<UsageSummary>("GET", "/api/usage?by=model");
      const row = (label: string, { calls, inputTokens, outputTokens, money }: UsageSummary["total"]) => [
        label,
        String(calls),
        inputTokens.toLocaleString("en"),
        outputTokens.toLocaleString("en"),
        money > 0 ? money.toFixed(4) : "",
      ];
      return columns([["model", "calls", "in", "out", ""], ...items.map((item) => row(item.name, item)), row("all", total)]);
    },
  },
];
