import { expect, test } from "vitest";
import { makeWiki, toolsOf } from "../support/wiki.ts";

/** Writes the pages in order and returns the contradictions as "says | other page says". */
async function found(...pages: [path: string, text: string][]): Promise<string[]> {
  const { wiki } = makeWiki();
  for (const [path, text] of pages) wiki.write(path, text);
  const items = await wiki.contradictions(pages.at(-1)![0]);
  return items.map(({ says, otherPath, otherSays }) => `${says} | ${otherPath.replace("pages/", "")}: ${otherSays}`);
}

test.each<[string, [string, string][], string[]]>([
  [
    "two sentences on different pages",
    [
      ["general/port", "# Port\n\nWe moor there. The harbour code is 4711."],
      ["general/diary", "# Diary\n\n- The **code** of the harbour is 0000."],
    ],
    ["The **code** of the harbour is 0000. | general/port.md: The harbour code is 4711."],
  ],
  [
    "a label on a project's page and a sentence about the project",
    [
      ["projects/shop", "# Shop\n\nPort: 8080\n"],
      ["general/servers", "# Servers\n\nThe port of Shop is 9090."],
    ],
    ["The port of Shop is 9090. | projects/shop.md: Port: 8080"],
  ],
  [
    "a section named after a project",
    [
      ["projects/shop", "# Shop\nDatabase: Postgres\n"],
      ["general/overview", "# Overview\n## Shop\n- Database: MySQL\n## Blog\n- Database: MySQL"],
    ],
    ["Database: MySQL | projects/shop.md: Database: Postgres"],
  ],
  [
    "two lines of one page, once",
    [["general/harbour", "# Harbour\n\nThe code is 4711.\nLater.\nThe code is 0000."]],
    ["The code is 4711. | general/harbour.md: The code is 0000."],
  ],
  [
    "a denial",
    [
      ["people/anna", "# Anna\nDiet: vegetarian"],
      ["people/anna-b", "# Anna\nDiet: not vegetarian"],
    ],
    ["Diet: not vegetarian | people/anna.md: Diet: vegetarian"],
  ],
  [
    "a yes and a no; where somebody lives",
    [
      ["general/a", "# Notes\nAnna lives in Rome.\nThe nightly build is on."],
      ["general/b", "# Facts\nAnna lives in Paris.\nThe nightly build is off."],
    ],
    [
      "Anna lives in Paris. | general/a.md: Anna lives in Rome.",
      "The nightly build is off. | general/a.md: The nightly build is on.",
    ],
  ],
])("facts that contradict each other are found: %s", async (_, pages, expected) => {
  expect((await found(...pages)).sort()).toEqual(expected);
});

test.each<[string, [string, string][]]>([
  [
    "the same fact in other words or with more detail",
    [
      ["general/port", "# Port\nThe harbour code is 4711."],
      ["general/diary", "# Diary\nThe code of the harbour is 4711, since May."],
    ],
  ],
  [
    "two projects that differ",
    [
      ["projects/shop", "# Shop\n## Setup\nPort: 8080\nThe default branch is main."],
      ["projects/blog", "# Blog\n## Setup\nPort: 9090\nThe default branch is master."],
    ],
  ],
  ["sections of one page", [["projects/shop", "# Shop\n## Staging\nPort: 8080\n## Production\nPort: 80"]]],
  ["a list", [["general/desk", "# Desk\nPhone: 1\nPhone: 2\nPhone: 3"]]],
  [
    "descriptions, questions and code",
    [
      ["general/a", "# A\nThe harbour code is important.\n```\nThe harbour gate is 1\n```"],
      ["general/b", "# B\nThe harbour code is 4711.\nThe harbour gate is 2\nThe harbour wall is 3?\nTags: x"],
    ],
  ],
  [
    "a negation about another subject",
    [
      ["general/a", "# A\nThe harbour code is not 4711."],
      ["general/b", "# B\nThe harbour code is 0000."],
    ],
  ],
])("what does not contradict is left alone: %s", async (_, pages) => {
  expect(await found(...pages)).toEqual([]);
});

test("a page with thousands of facts is compared quickly, new facts first, and the model gets at most twenty contradictions", async () => {
  const { wiki } = makeWiki();
  const rooms = (word: string) => Array.from({ length: 2_000 }, (_, at) => `The room key ${at}x is ${word}${at}.`).join("\n");
  wiki.write("general/keys", `# Keys\n${rooms("a")}`);
  wiki.write("general/other", `# Other\n${rooms("a")}`);
  wiki.write("general/other", `# Other\n${rooms("a")}\nThe room key 1999x is b1.`);
  const [write] = toolsOf(wiki).filter(({ name }) => name === "wiki_write");
  const context = { cwd: "/", actor: "orchestrator", owner: "message:1", signal: new AbortController().signal };
  const told = await write!.run({ path: "general/third", content: `# Third\n${rooms("c")}` }, context);
  const count = told.match(/^ {2}but /gm)?.length ?? 0;
  expect([count > 0, count <= 20]).toEqual([true, true]);
  const [first] = await wiki.contradictions("general/other");
  expect(first).toMatchObject({ says: "The room key 1999x is b1." });
});
