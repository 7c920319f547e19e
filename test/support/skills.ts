import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import type { News } from "../../src/protocol/events.ts";
import { openSkills, type SkillsDeps } from "../../src/skills/open.ts";
import { openStore } from "../../src/store/open.ts";
import { createSkillSwitches } from "../../src/store/skills.ts";
import { testGit } from "./git.ts";

export const temporary = () => realpathSync(mkdtempSync(join(tmpdir(), "io-test-")));

export function writeFiles(folder: string, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

export function git(folder: string, ...args: string[]): string {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...who, ...args], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}

/** Creates a real repository with one commit that contains the given files. */
export function repository(files: Record<string, string>, folder = temporary()): string {
  writeFiles(folder, files);
  git(folder, "init", "-q");
  git(folder, "add", "-A");
  git(folder, "commit", "-q", "--allow-empty", "-m", "first");
  return folder;
}

export function skillsIn(root = join(temporary(), "skills"), parts: Partial<SkillsDeps> = {}) {
  const news: News[] = [];
  const log = createLog({ redactor: createRedactor() });
  const scratch = join(root, "..", "scratch");
  const switches = createSkillSwitches(openStore(":memory:"));
  const own = { root, scratch, switches, emit: (item: News) => void news.push(item), log, git: testGit() };
  const skills = openSkills({ ...own, registry: () => "http://127.0.0.1:9", ...parts });
  return { root, scratch, switches, news, skills };
}

export const skillFile = (name: string, description: string) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\n# ${name}\n\nBody.\n`;
