import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createKnownPages, hashOf } from "../../src/store/known-pages.ts";
import { openStore } from "../../src/store/open.ts";
import { createState } from "../../src/store/state.ts";
import { createAccount } from "../../src/wiki/account.ts";
import { placeOf } from "../../src/wiki/paths.ts";
import { silent } from "../support/wiki.ts";

test("what IO wrote is known as its own at once, so that a change right after it says what stood there before", () => {
  const pages = mkdtempSync(join(tmpdir(), "io-pages-"));
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const known = createKnownPages({ store, state: createState(store), onOutside: () => undefined });
  known.begun();
  const account = createAccount({ pages, isSecret: () => false, known, log: silent });
  const place = placeOf(pages, "tea.md");
  const write = (text: string) => {
    account.willWrite(place, text);
    writeFileSync(place.file, text);
    account.hasWritten(place);
  };
  write("# Green\n");
  write("# Black\n");
  writeFileSync(place.file, "# Not mine\n");
  known.saw([{ path: place.path, text: "# Not mine\n" }]);
  expect(known.outsideOf(place.path)).toMatchObject({ change: "written", changes: 1, before: hashOf("# Black\n") });

  known.reviewed(place.path);
  account.willWrite(place, undefined);
  rmSync(place.file);
  account.hasWritten(place);
  known.saw([{ path: place.path, text: "# Made anew\n" }]);
  expect(known.outsideOf(place.path)).toMatchObject({ change: "written", before: "" });
});
