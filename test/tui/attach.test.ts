import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { picturesIn, withAttachments } from "../../src/tui/attach.ts";
import { complete } from "../../src/tui/input/completion.ts";
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
  expect(names(`I don't know what '${spaced}' shows`)).toEqual(["b c.PNG"]);
  expect(names(`see @"my shots/b c.PNG", and @'a.png'`)).toEqual(["b c.PNG", "a.png"]);
  expect(names(`file://${join(folder, "a.png")}`)).toEqual(["a.png"]);
  expect(names(`file://${encodeURI(spaced)}`)).toEqual(["b c.PNG"]);
  expect(names("@link.png and @a.png are one")).toEqual(["a.png"]);
  expect(names("a.png is only talked about, @fake.png and @large.png and @gone.png")).toEqual([]);
  expect(picturesIn("@a.png", folder)[0]?.bytes).toEqual(png(1));
});

test("files with spaces in their names are completed, and attached as they were completed", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "the plans"));
  writeFileSync(join(folder, "the plans", "of may.md"), "plant beans");
  const tab = async (text: string) => {
    const deps = { commands: [], argumentsOf: async () => ["ask", "auto"], people: async () => [], cwd: folder };
    const found = await complete({ text, caret: text.length, cut: "" }, deps);
    return found && text.slice(0, found.from) + found.options[0];
  };
  expect(await tab("see @the")).toBe("see @the\\ plans/");
  expect(await tab("see @the\\ pl")).toBe("see @the\\ plans/");
  expect(await tab("/mode a")).toBe("/mode ask");
  expect(await tab("/look-at @the")).toBe("/look-at @the\\ plans/");
  const whole = await tab("see @the\\ plans/of");
  expect(whole).toBe("see @the\\ plans/of\\ may.md");
  expect(withAttachments(whole!, folder)).toContain("--- begin the plans/of may.md\nplant beans\n--- end");
  expect(withAttachments('see @"the plans/of may.md".', folder)).toContain("plant beans");
  expect(withAttachments("see @the plans", folder)).toBe("see @the plans");
});
