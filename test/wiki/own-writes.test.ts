import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createKnownPages, hashOf } from "../../src/store/known-pages.ts";
import { openStore } from "../../src/store/open.ts";
import { createState } from "../../src/store/state.ts";
import { createOwnWrites } from "../../src/wiki/own-writes.ts";
import { resolvePage } from "../../src/wiki/paths.ts";
import { silent } from "../support/wiki.ts";

test("IO's own write is recorded at once, so an outside change right after it shows the correct previous text", () => {
  const pages = mkdtempSync(join(tmpdir(), "io-pages-"));
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const known = createKnownPages({ store, state: createState(store), onOutside: () => undefined });
  known.begun();
  const ownWrites = createOwnWrites({ pages, isSecret: () => false, known, log: silent });
  const page = resolvePage(pages, "tea.md");
  const write = (text: string) => {
    ownWrites.willWrite(page, text);
    writeFileSync(page.file, text);
    ownWrites.hasWritten(page);
  };
  write("# Green\n");
  write("# Black\n");
  writeFileSync(page.file, "# Not mine\n");
  known.saw([{ path: page.path, text: "# Not mine\n" }]);
  expect(known.outsideOf(page.path)).toMatchObject({ change: "written", changes: 1, before: hashOf("# Black\n") });

  known.reviewed(page.path);
  ownWrites.willWrite(page, undefined);
  rmSync(page.file);
  ownWrites.hasWritten(page);
  known.saw([{ path: page.path, text: "# Made anew\n" }]);
  expect(known.outsideOf(page.path)).toMatchObject({ change: "written", before: "" });
});
