import { test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import { isAfterTool, lastUserText } from "../../support/model.ts";
import { characterOf, project, squadWith } from "../../support/squads.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { askBefore } from "../../support/web/seed.ts";

test("a call that was refused, and a task without a proof, have the mark and the word in Telegram that they have elsewhere", {
  timeout: 120_000,
}, async () => {
  const model: Model = (request) => {
    const said = lastUserText(request);
    if (characterOf(request)) return { say: "I sang it." };
    if (isAfterTool(request) || !said.includes("[via telegram]")) return { say: "So be it." };
    // Progress of a call that ends at once is shown only together with the answer.
    if (said.includes("take away"))
      return {
        call: [
          { tool: "shell", args: { command: "sleep 1" } },
          { tool: "file_ops", args: { operation: "read", path: "/proc/self/environ" } },
        ],
      };
    return { call: [{ tool: "squad_delegate", args: { slug: "choir", task: "Sing a song" } }] };
  };
  const { daemon, owner } = await telegraphed(model, {
    config: { mode: "full", ...askBefore("sleep *"), approvalExpiresMs: 2_000 },
  });
  await squadWith(daemon, project(), "choir", ["Singer"]);
  owner.send("take away");
  await owner.sees(/^⚙ .*shell ✗ refused/, 60_000);
  owner.send("delegate it");
  await owner.sees(/^⚙ .* \(choir\): t_\w+ ! done, unproven$/, 60_000);
});
