import { readFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import { type ShownForm, startEditor } from "../../support/acp.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../../support/home.ts";
import { isIn, odd } from "../../support/mcp/servers.ts";
import { scriptedModel } from "../../support/model.ts";
import { callText, modelCalls, obedient } from "../../support/orchestrator.ts";
import { projectOf } from "../../support/project.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let model: ModelServer;
let notes: string;
beforeAll(async () => {
  model = await scriptedModel(obedient, undefined, atTheEnd);
  notes = join(temporaryFolder(atTheEnd), "calls.txt");
  // The server may be silent for one second, but a person may think longer.
  const mcpServers = { odd: { ...odd("plain", notes), timeout: 1_000 } };
  daemon = await startDaemonProcess(
    temporaryHome({ mode: "full", mcpServers }, atTheEnd),
    providerEnvironment(model.url),
    atTheEnd,
  );
  await isIn(daemon, "odd", "ready");
});

const asking = (what: string) => callText("mcp__odd__write", { text: `ask ${what}` });

async function inEditor(forms?: ShownForm[]) {
  const editor = await startEditor(daemon.home, {}, undefined, forms);
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: projectOf({}), mcpServers: [] });
  const ask = (text: string) =>
    editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  return { editor, sessionId, ask };
}

test("what an MCP server asks is shown by an editor that has forms, without tricks, and what the person fills in goes back", async () => {
  const forms: ShownForm[] = [];
  const { editor, sessionId, ask } = await inEditor(forms);
  const answer = ask(asking("form"));
  const { request, answer: fillIn } = await until("the form", () => forms[0]);
  expect(request).toEqual({
    sessionId,
    mode: "form",
    message: expect.stringMatching(/^The MCP server odd asks: Who are .*you\? form$/),
    requestedSchema: {
      type: "object",
      properties: {
        name: { type: "string", title: expect.stringContaining("name") },
        size: { type: "string", enum: ["small", "large"] },
      },
      required: ["name"],
    },
  });
  for (const letter of ["\u001b", "\u202e"]) expect(JSON.stringify(request)).not.toContain(letter);
  // Longer than the server itself may be silent.
  const asked = performance.now();
  await until("the person to have thought", () => performance.now() - asked > 1_500);
  fillIn({ action: "accept", content: { name: "Ada", size: "large", more: "that nobody asked for" } });
  expect(await answer).toEqual({ stopReason: "end_turn" });
  expect(editor.said(sessionId)).toContain('answered {"action":"accept","content":{"name":"Ada","size":"large"}}');

  for (const action of ["decline", "cancel"] as const) {
    const count = forms.length;
    const again = ask(asking(action));
    (await until("the next form", () => forms[count])).answer({ action });
    await again;
    expect(editor.said(sessionId)).toContain(`answered {"action":"${action}"}`);
  }

  // A server that asks twenty questions at once gets an answer to only one.
  const flood = ask(asking("often"));
  (await until("one form", () => forms[3])).answer({ action: "decline" });
  await flood;
  expect(forms).toHaveLength(4);

  // A stop withdraws the form.
  const stopped = ask(asking("for long"));
  const open = await until("the last form", () => forms[4]);
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await stopped).toEqual({ stopReason: "cancelled" });
  await until("the form to be taken back", () => open.signal.aborted);
});

test("where no editor shows forms, and for what is no form, the server is told that it was declined", async () => {
  const { read } = await modelCalls(daemon, model, "mcp__odd__write", { text: "ask form" });
  expect(read).toContain('answered {"action":"decline"}');
  const { editor, sessionId, ask } = await inEditor();
  await ask(asking("form"));
  expect(editor.said(sessionId)).toContain('answered {"action":"decline"}');
  const forms: ShownForm[] = [];
  const shows = await inEditor(forms);
  await shows.ask(asking("nested"));
  await shows.ask(asking("url"));
  expect(forms).toEqual([]);
  expect(readFileSync(notes, "utf8")).not.toContain('"action":"accept","content":{"a"');
  expect(shows.editor.said(shows.sessionId).match(/answered \{"(?:action":"decline|code)"/g)).toHaveLength(2);
});
