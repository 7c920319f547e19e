import { expect, test } from "vitest";
import type { Agent, ModelTier } from "../../src/protocol/squads.ts";
import { chooseAgent } from "../../src/squads/choose.ts";
import { modelTierFor } from "../../src/squads/complexity.ts";
import { stem } from "../../src/squads/words.ts";

const agent = (characterName: string, roleTitle: string, charter: string): Agent => ({
  characterName,
  roleTitle,
  charter,
  modelTier: "medium",
  status: "idle",
  createdAt: "",
});
const team = [
  agent("Hannibal", "Lead Architect", "Overall structure, technical decisions and code review."),
  agent("Face", "Frontend Engineer", "React components, styling and accessibility."),
  agent("B.A. Baracus", "Observability Engineer", "Owns logs, metrics and alerts."),
  agent("Murdock", "Backend Engineer", "REST endpoints, business logic and the database schema."),
  agent("Amy Allen", "Test Lead", "Unit and end-to-end tests, coverage."),
  agent("Frankie Santana", "CI/CD Engineer", "Docker images, GitHub Actions workflows and releases."),
];
const nobody = new Set<string>();

test.each([
  ["fix the login page", "Face"],
  ["rotate the logs every night", "B.A. Baracus"],
  ["logging is too noisy", "B.A. Baracus"],
  ["the button on the checkout form is misaligned", "Face"],
  ["add an endpoint for invoices", "Murdock"],
  ["write a migration that adds a column to the users table", "Murdock"],
  ["increase test coverage of the parser", "Amy Allen"],
  ["the Docker image is too big", "Frankie Santana"],
  ["speed up the deployment workflow", "Frankie Santana"],
  ["an explanation of how the modules are structured", "Hannibal"],
  ["Refactor the module structure", "Hannibal"],
  ["restyle the navigation menu", "Face"],
])('"%s" goes to %s', (task, expected) => {
  expect(chooseAgent(task, team, { busy: nobody })?.agent.characterName).toBe(expected);
});

test("the reason names the role and the words that fitted", () => {
  expect(chooseAgent("fix the login page", team, { busy: nobody })?.reason).toBe("Face (Frontend Engineer) fits: login, page");
});

test("of two that fit alike the idle one is chosen, but a busy expert is not passed over for a stranger", () => {
  const pair = [
    agent("Ripley", "Frontend Engineer", "The web client."),
    agent("Hicks", "Frontend Engineer", "The web client."),
    team[3]!,
  ];
  expect(chooseAgent("fix the login page", pair, { busy: nobody })?.agent.characterName).toBe("Ripley");
  const choice = chooseAgent("fix the login page", pair, { busy: new Set(["Ripley"]) });
  expect(choice?.agent.characterName).toBe("Hicks");
  expect(choice?.reason).toContain("idle, while Ripley is busy");
  expect(chooseAgent("fix the login page", team, { busy: new Set(["Face"]) })?.agent.characterName).toBe("Face");
});

test("work that no charter names goes to the most general agent, or an idle one", () => {
  expect(chooseAgent("translate it to Klingon", team, { busy: nobody })?.agent.characterName).toBe("Hannibal");
  expect(chooseAgent("translate it to Klingon", team, { busy: new Set(["Hannibal"]) })?.reason).toMatch(
    /no role or charter names this work/,
  );
});

test("work that no charter names goes to an idle agent before a busy one, however general", () => {
  const pair = [agent("Ripley", "Lead Architect", "Structure."), agent("Hicks", "Data Specialist", "Warehouses.")];
  const choice = chooseAgent("translate it to Klingon", pair, { busy: new Set(["Ripley"]) });
  expect([choice?.agent.characterName, choice?.reason]).toEqual([
    "Hicks",
    "no role or charter names this work; Hicks (Data Specialist) is the most general that is idle",
  ]);
  const both = chooseAgent("translate it to Klingon", pair, { busy: new Set(["Ripley", "Hicks"]) });
  expect([both?.agent.characterName, both?.reason]).toEqual([
    "Ripley",
    "no role or charter names this work; Ripley (Lead Architect) is the most general, and all are busy",
  ]);
  expect(chooseAgent("translate it to Klingon", pair, { busy: nobody })?.agent.characterName).toBe("Ripley");
});

test.each(["Ask Fe to fix the page", "fe, fix the page", "FE: fix the page", "please fix the page, @fe", "have Fe look at it"])(
  '"%s" is addressed to Fe',
  (task) => {
    const pair = [team[1]!, agent("Fe", "Data Specialist", "Warehouses.")];
    expect(chooseAgent(task, pair, { busy: nobody })?.reason).toBe("Fe is addressed by name");
  },
);

test("an agent that is addressed by name gets the task; a name that is only a word does not", () => {
  expect(chooseAgent("Murdock, look at the login page", team, { busy: nobody })?.agent.characterName).toBe("Murdock");
  expect(chooseAgent("ask B.A. Baracus to fix the page", team, { busy: nobody })?.agent.characterName).toBe("B.A. Baracus");
  expect(chooseAgent("Face detection in the database query", team, { busy: nobody })?.agent.characterName).toBe("Murdock");
  expect(chooseAgent("let face detection read the database", team, { busy: nobody })?.reason).not.toMatch(/addressed/);
  expect(chooseAgent("anything", [team[2]!], { busy: nobody })?.reason).toMatch(/only agent/);
  expect(chooseAgent("anything", [], { busy: nobody })).toBeUndefined();
});

test.each<[ModelTier, string, ModelTier]>([
  ["medium", "fix a typo in the footer", "low"],
  ["medium", "rename the variable", "low"],
  ["medium", "update the docs", "low"],
  ["medium", "refactor the session layer", "high"],
  ["medium", "migrate to the new database", "high"],
  ["low", "review the security of uploads", "medium"],
  ["high", "security audit", "high"],
  ["low", "fix a typo", "low"],
  ["medium", "add a button to the page", "medium"],
  ["medium", "fix the typo in the architecture docs", "low"],
  ["medium", "add information about the platform", "medium"],
  ["medium", "- one thing\n- another\n- a third\n- a fourth", "high"],
  ["medium", "Explain this. ".repeat(80), "high"],
  ["medium", `fix the typo ${"in this and that ".repeat(20)}`, "medium"],
])("an agent of the %s tier asked to %j works with the %s tier", (own, task, expected) => {
  const { tier, reason } = modelTierFor(own, task);
  expect(tier).toBe(expected);
  expect(reason).not.toBe("");
});

test("the reason for a raised tier is told", () => {
  expect(modelTierFor("medium", "refactor the session layer").reason).toBe('raised from medium to high: "refactor"');
});

test.each([
  ["logs", "log"],
  ["login", "login"],
  ["pages", "page"],
  ["migrations", "migrating"],
  ["queries", "query"],
  ["styling", "styles"],
  ["testing", "tests"],
  ["running", "runs"],
])("%s and %s share a stem", (one, other) => {
  expect(stem(one)).toBe(stem(other));
});
