import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OpenAPIHono } from "@hono/zod-openapi";
import { expect, test } from "vitest";
import { pageRoutes } from "../../../src/channels/http/page.ts";
import { temporaryFolder } from "../../support/home.ts";

test("a package that is replaced below a running daemon is served with its own files, without a restart", async () => {
  const folder = temporaryFolder();
  const install = (version: string) => {
    mkdirSync(join(folder, "assets"), { recursive: true });
    writeFileSync(join(folder, "assets", `index-${version}.js`), `// ${version}`);
    writeFileSync(join(folder, "index.html"), `<html lang="en"><script src="/assets/index-${version}.js"></script></html>`);
  };
  const app = new OpenAPIHono();
  pageRoutes(app, { folder, isKnown: () => false });
  const served = async () => {
    const html = await (await app.request("/chat/main")).text();
    return (await app.request(/src="([^"]+)"/.exec(html)![1]!)).text();
  };

  install("old");
  expect(await served()).toBe("// old");
  install("new");
  expect(await served()).toBe("// new");
});
