import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { endDaemonOf, providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

test("a wrong command line names the help of the very command", async () => {
  const home = temporaryHome();
  const wrong: [string[], string][] = [
    [["squad", "add-agent", "shop"], "(io squad add-agent --help shows how it is used)"],
    [["squad", "create", "--bogus"], "(io squad create --help shows how it is used)"],
    [["conversation", "show"], "(io conversation show --help shows how it is used)"],
    [["swarm", "show"], "(io swarm show --help shows how it is used)"],
    [["swarm", "--bogus"], "(io swarm run --help shows how it is used)"],
    [["bogus"], "(io --help lists the commands)"],
  ];
  for (const [args, help] of wrong)
    expect([args, await runIo(args, home)]).toEqual([args, { code: 2, stdout: "", stderr: expect.stringContaining(help) }]);
  const asSwarm = await runIo(["show"], home, {}, undefined, {
    run: ([node = "", io = "", ...rest]) => [node, join(dirname(io), "swarm.js"), ...rest],
  });
  expect(asSwarm).toMatchObject({ code: 2, stderr: expect.stringContaining("(swarm show --help shows how it is used)") });
});

test("a conversation of one message has one message", async () => {
  const model = await scriptedModel(() => ({ say: "Good day." }));
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  await daemon.ask({ text: "hello", conversation: "one" });
  expect((await runIo(["conversation", "list"], home)).stdout).toMatch(/^one {2}1 message {2}/);
});

test("where nobody chose a port and the default is taken, a daemon takes a free one and says so; a chosen one is refused", async () => {
  const taken = createServer();
  onTestFinished(() => void taken.close());
  const isOurs = () =>
    new Promise<boolean>((tell) => {
      taken.once("error", () => tell(false));
      taken.listen(3170, "127.0.0.1", () => tell(true));
    });
  // If another program keeps the port for longer, that serves the test just as well.
  await until("the default port", isOurs, 10_000).catch(() => undefined);
  const home = temporaryHome();
  onTestFinished(() => endDaemonOf(home));
  const started = await runIo(["start"], home, { IO_PORT: "", IO_ENGINE: "rehearsal" });
  expect(started).toMatchObject({ code: 0, stderr: expect.stringMatching(/Port 3170 is taken .* served on port (\d+)\./) });
  const port = /served on port (\d+)/.exec(started.stderr)![1];
  expect(started.stdout).toContain(`http://127.0.0.1:${port} `);
  const chosen = temporaryHome({ port: 3170 });
  const refused = await runIo(["start"], chosen, { IO_PORT: "", IO_ENGINE: "rehearsal" });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("Port 3170 on 127.0.0.1 is taken") });
});
