import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readTasks } from "../../src/swarm/agents/task-list.ts";
import { openDocuments } from "../../src/swarm/context/documents.ts";
import { readVerdict } from "../../src/swarm/review/verdict.ts";
import { temporaryFolder } from "../support/home.ts";

const ONE = '{"id":"T1","title":"Add x","acceptanceCriteria":["works","fast"]}';
const TWO = '{"id":"T2","title":"Add y","dependsOn":["T1"]}';

test.each([
  [`[${ONE},{"id"`, /no JSON array that is whole/],
  [`Here:\n\`\`\`json\n[${ONE},\n{"id": "T2"\n\`\`\``, /no JSON array that is whole/],
  [`{"id":"T1","acceptanceCriteria":["works","fast"]}`, /no JSON array/],
  [`{id: "T1", "criteria": ["works","fast"]`, /no JSON array/],
  [`{id: "T1", "criteria": ["works","fast"]}`, /no JSON array/],
  [`{"tasks": ["works","fast"]}`, /no JSON array/],
  [`[T1, ["works","fast"]]`, /no JSON array/],
  [`${ONE}\n{"id":"T2","ti`, /no JSON array that is whole/],
  [`${ONE}\n{"result":"ok"}`, /no JSON array/],
  ['I looked at ["a.ts","b.ts"]. I cannot do it.', /array of strings/],
  ['Files: ["a.ts"]\n\nTasks:\n["Add x"]', /several JSON arrays/],
  ['["a.ts","b.ts"]\n\n{"note":"nothing"}', /array of strings/],
])("the reply %j holds no list of tasks, and why is said", (reply, why) => {
  expect(readTasks(reply, "[FRONTEND]")).toMatchObject({ problem: expect.stringMatching(why) });
});

const ids = (reply: string) => {
  const read = readTasks(reply, "[FRONTEND]");
  return "tasks" in read ? read.tasks.map(({ id, text }) => `${id} ${text}`) : read.problem;
};

test("the list of task objects is found beside other arrays, and a task alone or a task a line is a list", () => {
  expect(ids(`I looked at ["a.ts","b.ts"]. [${ONE}]`)).toEqual(["T1 Add x"]);
  expect(ids(`[${ONE},${TWO}]\nNot changed: ["a.ts"], {"x": 1} and [this`)).toEqual(["T1 Add x", "T2 Add y"]);
  expect(ids(`I read [the spec] {so far}, see [1]:\n[${ONE}]`)).toEqual(["T1 Add x"]);
  expect(ids(ONE)).toEqual(["T1 Add x"]);
  expect(ids(`\`\`\`json\n${ONE}\n${TWO}\n\`\`\``)).toEqual(["T1 Add x", "T2 Add y"]);
  expect(ids('["Add x","Add y"]')).toEqual(["T1 Add x", "T2 Add y"]);
  expect(ids('The tasks [as agreed] are: ["Add x"]\nThat is all.')).toEqual(["T1 Add x"]);
});

test.each(["[x", "{", '["', '[{"a":', "[x] "])("a reply full of %j is read in no time, and holds no tasks", (text) => {
  expect(readTasks(text.repeat(100_000), "")).toHaveProperty("problem");
});

test.each([
  "NOT\nAPPROVED",
  "NOT\n\nAPPROVED",
  "**Not**\n\n**APPROVED**",
  "No\nAPPROVED",
  "This is definitely not\nAPPROVED",
  "I can't say\n\nAPPROVED\n\nuntil the tests pass.",
  "APPROVED\nunless the build breaks",
  "APPROVED\n\n- once the tests pass",
  "APPROVED\n\n**If** x is renamed.",
  "APPROVED\nafter a rebase",
  "APPROVED\nwhen green",
  "APPROVED\nprovided that y",
  "Not\nAPPROVED\n\nFine now.\n\nAPPROVED",
])("the reply %j is no approval", (reply) => {
  expect(readVerdict(reply, "APPROVED")).toBe("rejected");
});

test.each([
  "I looked whether it does not break: it holds.\n\nAPPROVED",
  "APPROVED\n\nThe tests pass if run twice.",
  "Blocking findings: no\n\nAPPROVED",
  "APPROVED\n\nIffy names, but fine.",
])("the reply %j approves", (reply) => {
  expect(readVerdict(reply, "APPROVED")).toBe("approved");
});

test("documents are written again when their folder was taken away, and never out of the project", () => {
  const projectPath = temporaryFolder();
  const documents = openDocuments({ projectPath, docDir: "doc/swarm", now: () => new Date(0) });
  rmSync(join(projectPath, "doc"), { recursive: true });
  documents.write("a.md", "A", "text");
  expect(readFileSync(join(projectPath, "doc", "swarm", "a.md"), "utf8")).toMatch(/^# A\n[\s\S]*text\n$/);
  rmSync(join(projectPath, "doc"), { recursive: true });
  documents.remove("a.md");
  const outside = temporaryFolder();
  mkdirSync(join(outside, "swarm"));
  rmSync(join(projectPath, "doc"), { recursive: true, force: true });
  symlinkSync(outside, join(projectPath, "doc"));
  expect(() => documents.write("a.md", "A", "text")).toThrow(/leads out of the project/);
  expect(existsSync(join(outside, "swarm", "a.md"))).toBe(false);
});
