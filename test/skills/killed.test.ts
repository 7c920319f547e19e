import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { repository } from "../support/skills.ts";
import { daemonOn } from "../support/squads.ts";
import { until } from "../support/until.ts";

test("a daemon that is killed in the middle of a clone leaves no half a skill, and installs it whole the next time", async () => {
  const files = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`notes/${at}.md`, `note ${at}\n`.repeat(500)]));
  const repoUrl = repository({ "SKILL.md": "---\nname: whole\ndescription: All of it.\n---\n\nDo it.\n", ...files });
  const model = await scriptedModel(() => ({ say: "ready" }));
  const home = temporaryHome();
  const scratch = join(home, "scratch");
  const cloning = () => existsSync(scratch) && readdirSync(scratch).some((name) => name.startsWith("clone-"));
  const daemon = await daemonOn(model, home);
  const installing = daemon.json("POST", "/api/skills", { repoUrl });
  installing.catch(() => undefined);
  await until("the clone to begin", cloning, 10_000);
  await daemon.kill("SIGKILL");

  const again = await daemonOn(model, home);
  expect(await again.json("GET", "/api/skills")).toEqual({ items: [] });
  expect(readdirSync(join(home, "skills"))).toEqual([]);
  expect(await again.json("POST", "/api/skills", { repoUrl })).toMatchObject({ items: [{ slug: "whole" }] });
  expect(readdirSync(join(home, "skills", "whole", "notes"))).toHaveLength(150);
});
