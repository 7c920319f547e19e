import { expect, test } from "vitest";
import type { UniverseName } from "../../src/protocol/squads.ts";
import { mannerOf, nextCharacter, pickUniverse, UNIVERSES } from "../../src/squads/universes.ts";

test("characters are handed out in order, and a universe that is used up goes on with numbers", () => {
  const taken: string[] = [];
  for (let count = 0; count < 14; count += 1) taken.push(nextCharacter("a-team", taken).name);
  expect(taken.slice(0, 6)).toEqual(["Hannibal", "Face", "B.A. Baracus", "Murdock", "Amy Allen", "Frankie Santana"]);
  expect(taken.slice(6)).toEqual([
    "Hannibal 2",
    "Face 2",
    "B.A. Baracus 2",
    "Murdock 2",
    "Amy Allen 2",
    "Frankie Santana 2",
    "Hannibal 3",
    "Face 3",
  ]);
  expect(mannerOf("a-team", "Face 3")).toBe(mannerOf("a-team", "Face"));
});

test("the name of an agent who left is given again before a numbered one", () => {
  expect(nextCharacter("aliens", ["Ripley", "Bishop"]).name).toBe("Hicks");
});

test("six universes of six to eight characters, each with a manner of its own", () => {
  expect(UNIVERSES.map(({ name, characters }) => [name, characters.length])).toEqual([
    ["a-team", 6],
    ["transformers", 8],
    ["thundercats", 7],
    ["gi-joe", 8],
    ["aliens", 8],
    ["ghostbusters", 8],
  ]);
  const manners = UNIVERSES.flatMap(({ characters }) => characters.map(({ manner }) => manner));
  expect(new Set(manners).size).toBe(45);
});

test("a new squad gets a universe that no other uses, and else the least used", () => {
  const used: UniverseName[] = [];
  for (let count = 0; count < 6; count += 1) used.push(pickUniverse(used));
  expect(used).toEqual(["a-team", "transformers", "thundercats", "gi-joe", "aliens", "ghostbusters"]);
  expect(pickUniverse([...used, "a-team", "transformers"])).toBe("thundercats");
});
