import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { picturesIn } from "../../src/tui/attach.ts";
import { temporaryFolder } from "../support/home.ts";
import { png } from "../support/images.ts";

test("pictures are found by an at-sign and by a path as terminals paste it, and only real ones", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "my shots"));
  writeFileSync(join(folder, "a.png"), png(1));
  writeFileSync(join(folder, "my shots", "b c.PNG"), png(2));
  writeFileSync(join(folder, "fake.png"), "<svg>");
  writeFileSync(join(folder, "large.png"), Buffer.concat([png(3), Buffer.alloc(10_000_000)]));
  symlinkSync(join(folder, "a.png"), join(folder, "link.png"));
  const names = (text: string) => picturesIn(text, folder).map(({ name }) => name);
  const spaced = join(folder, "my shots", "b c.PNG");
  expect(names("look at @a.png, please")).toEqual(["a.png"]);
  expect(names(`${join(folder, "a.png")} what is it?`)).toEqual(["a.png"]);
  expect(names(spaced.replaceAll(" ", "\\ "))).toEqual(["b c.PNG"]);
  expect(names(`see\n'${spaced}'`)).toEqual(["b c.PNG"]);
  expect(names(`file://${join(folder, "a.png")}`)).toEqual(["a.png"]);
  expect(names("@link.png and @a.png are one")).toEqual(["a.png"]);
  expect(names("a.png is only talked about, @fake.png and @large.png and @gone.png")).toEqual([]);
  expect(picturesIn("@a.png", folder)[0]?.bytes).toEqual(png(1));
});
