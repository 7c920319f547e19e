import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { parseManifest } from "../../src/skills/manifest.ts";
import { readRunSettings } from "../../src/swarm/pipeline/settings.ts";
import { createPipelines } from "../../src/swarm/run/pipelines.ts";
import { temporaryFolder } from "../support/home.ts";

const folder = join(packageRoot, "docs", "guides");
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const blocks = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, block = ""]) => block);

test("every guide is listed, and short enough to finish", () => {
  const names = readdirSync(folder).filter((name) => name !== "README.md");
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !read("README.md").includes(`](${name})`))).toEqual([]);
  expect(names.filter((name) => read(name).trim().split(/\s+/).length > 700)).toEqual([]);
});

describe("the pipelines of the guide", () => {
  const examples = blocks(read("pipelines.md"), "yaml");
  const [agent = ""] = blocks(read("pipelines.md"), "markdown");

  test("are three, and one that is wrong would be noticed", async () => {
    expect(examples).toHaveLength(3);
    await expect(validate(examples[0]!.replace("maxIterations", "maxIteration"))).rejects.toThrow("maxIteration");
    await expect(validate(examples[2]!.replace("security.md", "sekurity.md"))).rejects.toThrow("sekurity.md");
  });

  test.each(examples.map((text, index) => [index + 1, text] as const))(
    "example %i is a file that swarm takes",
    async (_, text) => {
      const plan = await validate(text);
      expect(plan.phases.length).toBeGreaterThan(1);
    },
  );

  function validate(text: string) {
    const project = temporaryFolder();
    const file = (path: string, content: string) => {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), content);
    };
    file("swarm.config.yaml", text);
    file(".github/agents/security.md", agent);
    return createPipelines().validate({ projectPath: project, settings: readRunSettings({}) });
  }
});

test("the skill of the guide says what it is called and what it is for", () => {
  const [skill = ""] = blocks(read("writing-a-skill.md"), "markdown");
  const { name, description } = parseManifest(skill, "none");
  expect(name).toBe("release-notes");
  expect(description).toMatch(/^Write release notes .* changelog\.$/);
});
