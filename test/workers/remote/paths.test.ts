import { expect, test } from "vitest";
import { createPathNames } from "../../../src/workers/remote/paths.ts";

const there = { cwd: "/home/u/.io/runs/r/worktrees/s1/web", projectPath: "/home/u/project", prefix: "web" };
const top = "/srv/io-projects/p/jobs/j/worktrees/job";
const names = createPathNames(there, top, `${top}/web`);
const command = (text: string) => names.args({ command: text }).command;

test("folders that the model knows are called as they are here, whichever of them and however often", () => {
  expect(command(`cd ${there.cwd} && cat /home/u/.io/runs/r/worktrees/s1/README.md ${there.cwd}/a`)).toBe(
    `cd ${top}/web && cat ${top}/README.md ${top}/web/a`,
  );
  expect(command("gcc -I/home/u/project/include")).toBe(`gcc -I${top}/web/include`);
  expect(command("ls /home/u/project. Or /home/u/project/.git")).toBe(`ls ${top}/web. Or ${top}/web/.git`);
});

test("a folder beside it whose name only begins like it is another one", () => {
  for (const other of ["/home/u/project-two", "/home/u/projects/a", "/home/u/project.old/a", "/home/u/project_2"])
    expect(command(`ls ${other}`)).toBe(`ls ${other}`);
  expect(names.text(`${top}-2/a ${top}/web2`)).toBe(`${top}-2/a /home/u/.io/runs/r/worktrees/s1/web2`);
});

test("what was renamed is not renamed again, though a worker keeps it below a folder of the same name", () => {
  const same = createPathNames({ cwd: "/root/w", projectPath: "/root", prefix: "" }, "/root/w/p/job", "/root/w/p/job");
  expect(same.args({ path: "/root/w/a", working_dir: "/root" })).toEqual({
    path: "/root/w/p/job/a",
    working_dir: "/root/w/p/job",
  });
});

test("only arguments that name a place are changed, and answers are told as the model knows them", () => {
  expect(names.args({ path: there.cwd, content: there.cwd, lines: 3 })).toEqual({
    path: `${top}/web`,
    content: there.cwd,
    lines: 3,
  });
  expect(names.text(`${top}/web/a.ts:1 and ${top}/README.md`)).toBe(
    "/home/u/.io/runs/r/worktrees/s1/web/a.ts:1 and /home/u/.io/runs/r/worktrees/s1/README.md",
  );
});
