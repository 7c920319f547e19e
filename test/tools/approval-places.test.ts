import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { approvalsOf, asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const model = await scriptedModel(obedient, undefined, afterAll);
// biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
const config = { approvals: "effects", approvalRules: [{ tool: "file_ops", match: "*", then: "ask" }] };
const home = temporaryHome(config, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
let conversations = 0;

/** Two folders of the same shape: one that a person is asked about, and one that replaces it. */
function ground() {
  const root = realpathSync(temporaryFolder());
  for (const side of ["shown", "other"])
    for (const folder of ["a/b", "a/c"]) mkdirSync(join(root, side, folder), { recursive: true });
  for (const side of ["shown", "other"]) writeFileSync(join(root, side, "a", "b", "file"), `${side}\n`);
  symlinkSync(join(root, "shown", "a"), join(root, "link"));
  return {
    root,
    shown: join(root, "shown"),
    other: join(root, "other"),
    inside: join(root, "shown", "a", "b"),
    file: join(root, "shown", "a", "b", "file"),
  };
}
type Ground = ReturnType<typeof ground>;

/** Lets the model make a call, acts while a person is being asked, then allows the call. Returns what the model read. */
async function allowedAfter(tool: string, args: unknown, meanwhile: () => void): Promise<{ reply: string; id: string }> {
  conversations += 1;
  const text = callText(tool, args);
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation: `places-${conversations}` });
  const [question] = await asked(daemon);
  meanwhile();
  expect((await decide(daemon, question!.id, { decision: "allow" })).status).toBe(200);
  return { id, reply: (await finishedMessage(daemon, id)).reply ?? "" };
}

/** Moves what is at `to` aside and puts `from` in its place. */
const exchange = (from: string, to: string) => {
  renameSync(to, `${to}.old`);
  renameSync(from, to);
};
const relink = (path: string, target: string) => {
  unlinkSync(path);
  symlinkSync(target, path);
};
const run = (working_dir: string) => ["shell", { command: "cat file; echo ran >> done", working_dir }] as const;
const op = (operation: string, path: string) =>
  ["file_ops", { operation, path, ...(operation === "write" && { content: "new\n" }) }] as const;

const CASES: Record<string, (ground: Ground) => { call: readonly [string, unknown]; meanwhile: () => void }> = {
  "the folder of a command": ({ inside, other }) => ({
    call: run(inside),
    meanwhile: () => exchange(join(other, "a", "b"), inside),
  }),
  "a folder above that of a command": ({ shown, inside, other }) => ({
    call: run(inside),
    meanwhile: () => exchange(other, shown),
  }),
  "a folder above, by a link": ({ shown, inside, other }) => ({
    call: run(inside),
    meanwhile: () => {
      renameSync(shown, `${shown}.old`);
      symlinkSync(other, shown);
    },
  }),
  "a folder above, around the very same folder": ({ shown, inside, other }) => ({
    call: run(inside),
    meanwhile: () => {
      exchange(join(shown, "a", "b"), join(other, "a", "b"));
      exchange(other, shown);
    },
  }),
  "a file that is read": ({ file, other }) => ({
    call: op("read", file),
    meanwhile: () => exchange(join(other, "a", "b", "file"), file),
  }),
  "a file that is read, by a link in its place": ({ file, other }) => ({
    call: op("read", file),
    meanwhile: () => {
      unlinkSync(file);
      symlinkSync(join(other, "a", "b", "file"), file);
    },
  }),
  "a file that is read, by a link on the way": ({ root, other }) => ({
    call: op("read", join(root, "link", "b", "file")),
    meanwhile: () => relink(join(root, "link"), join(other, "a")),
  }),
  "what is in a file that is read, its size and times kept": ({ file }) => ({
    call: op("read", file),
    meanwhile: () => {
      writeFileSync(file, "OTHER\n");
      utimesSync(file, 1, 1);
    },
  }),
  "a file that is written": ({ file, other }) => ({
    call: op("write", file),
    meanwhile: () => exchange(join(other, "a", "b", "file"), file),
  }),
  "a folder of a file that is written": ({ file, shown, other }) => ({
    call: op("write", file),
    meanwhile: () => exchange(other, shown),
  }),
  "a new file's folder": ({ inside, shown, other }) => ({
    call: op("write", join(inside, "fresh")),
    meanwhile: () => exchange(other, shown),
  }),
  "a new file, by one that is there now": ({ inside }) => ({
    call: op("write", join(inside, "fresh")),
    meanwhile: () => writeFileSync(join(inside, "fresh"), "theirs\n"),
  }),
  "a folder that is listed": ({ inside, other }) => ({
    call: op("list", inside),
    meanwhile: () => exchange(join(other, "a", "b"), inside),
  }),
  "a project": ({ shown, other }) => ({
    call: ["squad_create", { name: "Places", project_path: shown }],
    meanwhile: () => exchange(other, shown),
  }),
};

test.each(Object.keys(CASES))("exchanged between a question and its answer, nothing is done with it: %s", async (name) => {
  const place = ground();
  const { call, meanwhile } = CASES[name]!(place);
  const { reply, id } = await allowedAfter(call[0], call[1], meanwhile);
  expect(reply).toContain("exchanged or changed meanwhile");
  expect(reply).not.toMatch(/other\n|OTHER|exit code/);
  for (const folder of [place.shown, place.other, `${place.shown}.old`])
    for (const made of ["a/b/done", "a/b/fresh"].filter((file) => existsSync(join(folder, file))))
      expect([made, readFileSync(join(folder, made), "utf8")]).toEqual(["a/b/fresh", "theirs\n"]);
  expect(journalOf(home, id)).toEqual([{ tool: call[0], state: "refused" }]);
  expect(await daemon.json("GET", "/api/squads")).toMatchObject({ items: [] });
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("what nobody touched is done, also when other things in the folder changed", async () => {
  const { inside, file } = ground();
  const busy = () => writeFileSync(join(inside, "neighbour"), "x");
  expect((await allowedAfter(...run(inside), busy)).reply).toContain("shown");
  expect((await allowedAfter(...op("read", file), busy)).reply).toContain("shown");
  expect((await allowedAfter(...op("write", file), busy)).reply).toContain("Replaced");
  expect(readFileSync(file, "utf8")).toBe("new\n");
});

test("exchanged while no daemon runs, the same call asks again and the earlier question is withdrawn", async () => {
  const own = temporaryHome(config);
  const first = await startDaemonProcess(own, providerEnvironment(model.url));
  const { shown, other, inside } = ground();
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: callText(...run(inside)) });
  const [before] = await asked(first);
  await first.kill("SIGKILL");
  exchange(other, shown);
  const second = await startDaemonProcess(own, providerEnvironment(model.url));
  const after = await until("another question", async () =>
    (await approvalsOf(second, "waiting")).find((each) => each.id !== before!.id),
  );
  expect((await approvalsOf(second)).find((each) => each.id === before!.id)).toMatchObject({ state: "withdrawn" });
  expect((await decide(second, before!.id, { decision: "allow" })).status).toBe(409);
  expect(existsSync(join(inside, "done"))).toBe(false);
  await decide(second, after!.id, { decision: "allow" });
  expect((await finishedMessage(second, id)).reply).toContain("other");
  expect(readFileSync(join(inside, "done"), "utf8")).toBe("ran\n");
}, 60_000);
