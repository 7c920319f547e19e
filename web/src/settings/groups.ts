import type { Field } from "./fields.ts";

export interface Group {
  name: string;
  says: string;
  keys: readonly string[];
}

/** The config's keys, grouped by what a user wants to do. */
export const GROUPS: readonly Group[] = [
  {
    name: "Models",
    says: "Who answers, and what serves when that is not there.",
    keys: ["defaultModel", "modelTiers", "modelByDifficulty", "provider", "githubToken", "ollamaUrl"],
  },
  {
    name: "Safety",
    says: "How much IO may do unasked, and what keeps commands in.",
    keys: [
      ...["mode", "sandbox", "sandboxRead", "sandboxNetwork", "acpTerminal", "approvals", "approvalExpiresMs", "approvalRules"],
      ...["selfEditEnabled", "webFetchAllow"],
    ],
  },
  { name: "Budgets", says: "What work may use up before you are asked.", keys: ["budgets", "prices", "currency"] },
  {
    name: "Telegram and news",
    says: "Where IO reaches you, and when it may.",
    keys: ["telegramEnabled", "telegramBotToken", "authorizedUserId", "telegramApiRoot", "transcribeCommand", "news"],
  },
  {
    name: "Tools",
    says: "What IO can reach beyond its own tools.",
    keys: ["mcpServers", "skillsRegistry", "updateRegistry", "forge", "github", "gitea"],
  },
  {
    name: "Address",
    says: "Where the daemon listens, and who may talk to it. These need a restart.",
    keys: ["host", "port", "allowRemote", "allowedHosts", "openaiOrigins"],
  },
  {
    name: "Limits",
    says: "How long work may take, how much memory it may use, and how long what adds up is kept.",
    keys: [
      ...["turnSilenceMs", "turnCapMs", "taskSilenceMs", "taskCapMs", "maxLiveSessions", "runtimeMaxMb"],
      ...["retention", "logLevel"],
    ],
  },
  { name: "Other hosts", says: "Whether workers on other machines take part.", keys: ["cluster", "dispatch"] },
];

/** The anchor of a group. */
export const groupId = (name: string): string => `group-${name.toLowerCase().replaceAll(" ", "-")}`;

export interface FieldGroup extends Group {
  fields: Field[];
}

/** Sorts the fields into their groups. Keys that no group names go into the last one. */
export function groupFields(fields: readonly Field[]): FieldGroup[] {
  const known = new Map(fields.map((field) => [field.key, field]));
  const grouped = GROUPS.map((group) => ({ ...group, fields: group.keys.flatMap((key) => known.get(key) ?? []) }));
  const named = new Set(GROUPS.flatMap(({ keys }) => keys));
  const others = fields.filter(({ key }) => !named.has(key));
  const rest = { name: "More", says: "Everything else.", keys: others.map(({ key }) => key), fields: others };
  return [...grouped, rest].filter((group) => group.fields.length > 0);
}

/** The daemon's errors about a change, by key; those that name no key are under "". */
export function problemsByKey(message: string, keys: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of message.split("\n")) {
    const words = line.trim();
    if (words === "" || /^config:?$/.test(words)) continue;
    const named = /^([A-Za-z]+)[.:]/.exec(words)?.[1] ?? "";
    const key = keys.includes(named) ? named : "";
    found[key] = found[key] === undefined ? words : `${found[key]}\n${words}`;
  }
  return found;
}
