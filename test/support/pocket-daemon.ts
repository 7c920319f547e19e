import { startDaemon } from "../../src/daemon/start.ts";
import { createPocket } from "./pocket-channel.ts";

/** A daemon with one channel in addition to IO's own. */
const { POCKET_PORT, POCKET_PASSWORD = "" } = process.env;
const daemon = await startDaemon({
  env: process.env,
  echo: (line) => console.error(line),
  moreChannels: ({ inbox }) => [createPocket({ inbox, port: Number(POCKET_PORT), password: POCKET_PASSWORD })],
});
process.once("SIGTERM", () => void daemon.stop().then(() => process.exit(0)));
