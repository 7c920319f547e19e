import { expect, test } from "vitest";
import { asked, decide } from "../support/approvals.ts";
import { openChat } from "../support/chat.ts";
import { cleanEnvironment, IO } from "../support/daemon.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const results = (request: { messages: { role: string }[] }) => request.messages.filter(({ role }) => role === "tool");

/** A model that calls the shell once per message and reports the result. */
function caller(command: string) {
  return (said: string, request: Parameters<typeof results>[0] & { messages: unknown[] }) => {
    const last = JSON.stringify(request.messages.at(-1));
    if (last.includes('"role":"tool"')) return { say: `It said: ${/printed \w+|refus\w+|denied|not allowed/i.exec(last)?.[0]}` };
    return { call: [{ tool: "shell", args: { command: `${command} ${said}` } }], say: "I would like to print." };
  };
}

test("a question is answered in place, with its whole command in sight: one is allowed, one denied with a reason", {
  timeout: 90_000,
}, async () => {
  const { terminal, daemon, model } = await openChat(caller("echo printed"), { config: { approvals: "effects" } });
  await terminal.enter("first");
  await terminal.sees(/\? \w{5}: orchestrator wants to use shell/);
  await terminal.sees("echo printed first");
  await terminal.sees("1 waits for you");
  await terminal.sees("y allows, n denies");
  await terminal.press("y");
  await terminal.sees("allowed by");
  await terminal.sees("It said: printed first");
  await terminal.enter("second");
  const id = await until("the second question", async () => /Answer: \/allow (\w{5})/.exec(await terminal.screen())?.[1]);
  await terminal.enter("/approvals");
  await until("the list", async () => (await terminal.screen()).split(`/allow ${id}`).length > 2);
  await terminal.enter(`/deny ${id} rather not`);
  await terminal.sees(/denied by .*: rather not/);
  await until("the answer", () => model.requests.length === 4);
  expect(JSON.stringify(model.requests[3]!.messages.at(-1))).toContain("rather not");
  const { items } = await daemon.json<{ items: { state: string }[] }>("GET", "/api/approvals");
  expect(items.map(({ state }) => state)).toEqual(["denied", "allowed"]);
});

test("a question that is decided elsewhere is gone from the terminal, and who decided is told", { timeout: 60_000 }, async () => {
  const { terminal, daemon } = await openChat(caller("echo printed"), { config: { approvals: "effects" } });
  await terminal.enter("third");
  await terminal.sees("1 waits for you");
  const [question] = await asked(daemon);
  expect((await decide(daemon, question!.id, { decision: "allow" })).status).toBe(200);
  await terminal.sees(/allowed by/);
  await terminal.sees("It said: printed third");
  await until("the count to be gone", async () => !(await terminal.screen()).includes("waits for you"));
});

test("a tool has a quiet line with what it does, and Ctrl-O shows its result in full", { timeout: 60_000 }, async () => {
  const { terminal } = await openChat(caller("printf 'row %s\\n' $(seq 1 30); echo printed"));
  await terminal.enter("rows");
  await terminal.sees("It said: printed rows");
  await terminal.sees(/✓ \$ printf 'row %s\\n' \$\(seq 1 30\); echo printed rows {2}exit 0 {2}[\d.]+ s/);
  await terminal.press("C-o");
  await terminal.sees("    row 30");
  expect(await terminal.screen()).toContain("    row 1\n");
});

test("io send asks on the terminal that it waits on, and takes y for an answer", { timeout: 60_000 }, async () => {
  const { home, daemon } = await openChat(caller("echo printed"), { config: { approvals: "effects" } });
  const command = [process.execPath, IO, "send", "fourth", "--conversation", "typed"];
  const terminal = await openTerminal(home, ["sh", "-c", '"$@"; sleep 60', "sh", ...command], cleanEnvironment(home), {
    name: "send",
  });
  await terminal.sees("Allow it? y or n");
  expect(await terminal.screen()).toMatch(/echo printed fourth[\s\S]*Answer: .*approval allow \w{5}/);
  await terminal.enter("y");
  await terminal.sees("It said: printed fourth");
  const { items } = await daemon.json<{ items: { state: string }[] }>("GET", "/api/approvals");
  expect(items.map(({ state }) => state)).toEqual(["allowed"]);
});
