import { expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import { findDaemon } from "../../src/home/daemon-file.ts";
import { pathsOf } from "../../src/home/paths.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { lockHolder } from "../../src/store/lock.ts";
import { scriptedModel } from "../support/model.ts";
import { daemonOn } from "../support/squads.ts";

test("a message tells where its sender stands, whether its end is waited for or not", async () => {
  const daemon = await daemonOn(await scriptedModel(() => ({ say: "ready" })));
  const paths = pathsOf({ IO_HOME: daemon.home });
  const client = connect({ paths, env: {}, daemon: () => findDaemon(paths, lockHolder), folder: "/srv/app" });
  for (const path of ["/api/messages", "/api/messages?wait=true"]) {
    const { id } = await client.request<Message>("POST", path, { text: "hello", source: "tui" });
    expect((await daemon.json<Message>("GET", `/api/messages/${id}`)).source).toEqual({ channel: "tui", folder: "/srv/app" });
  }
});
