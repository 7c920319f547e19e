import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ForgeError } from "../../src/forge/client.ts";
import { createGitHub } from "../../src/forge/github.ts";
import { type LookDeps, lookAtRepository, newMemory } from "../../src/forge/look.ts";
import type { Forge, Issue, Pull } from "../../src/forge/port.ts";
import type { PullRow } from "../../src/store/pulls.ts";

/** GitHub's API as a small self-written server may implement it: only the necessary fields. */
const LEAN: Record<string, unknown> = {
  "/repos/acme/a/issues": [{ number: 1, title: "Greet", state: "open" }],
  "/repos/acme/a/issues/1/comments": [{ id: 5, body: "hello", user: { login: "mona" }, created_at: "2026-01-02T03:04:05Z" }],
  "/repos/acme/a/pulls/2": {
    ...{ number: 2, title: "Greet", state: "closed", merged: true },
    ...{ head: { ref: "io/work", sha: "abc" }, base: { ref: "main" } },
  },
  "/repos/acme/a/commits/abc/check-runs": { check_runs: [{ id: 9, name: "test", status: "completed", conclusion: "failure" }] },
  "/repos/acme/a/commits/def/status": { statuses: [{ id: 8, context: "ci/other", state: "failure" }] },
};

test("what a server leaves out of GitHub's API, and what is only shown, keeps nobody from working", async () => {
  const server = createServer(({ url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const found = LEAN[pathname];
    if (pathname === "/repos/acme/a/actions/jobs/9/logs") response.end("expected 3, was 4");
    else response.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found ?? {}));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const forge = createGitHub({ apiUrl, repo: "acme/a", token: "t" });
  expect(await forge.changedSince(undefined)).toMatchObject([{ number: 1, labels: [], isOpen: true }]);
  expect(await forge.comments(1)).toMatchObject([{ body: "hello", updatedAt: "2026-01-02T03:04:05Z" }]);
  expect(await forge.pull(2)).toMatchObject({ state: "merged", labels: [] });
  const [failed] = await forge.checks("abc");
  expect(failed).toMatchObject({ name: "test", state: "failed" });
  expect(await forge.log(failed!)).toBe("expected 3, was 4");
  expect(await forge.checks("def")).toMatchObject([{ name: "ci/other", state: "failed" }]);
});

const issue: Issue = {
  ...{ number: 1, title: "Greet", body: "", author: "mona", isOpen: true, isPull: false, labels: [] as string[] },
  updatedAt: "2026-01-02T03:04:05Z",
};
const pull: Pull = {
  ...{ number: 2, url: "", title: "", body: "", state: "open", isDraft: false, isMergeable: true, base: "main", labels: [] },
  head: { branch: "io/work", repo: "acme/a", commit: "abc" },
};

function look(forge: Partial<Forge>, watch: Partial<LookDeps["watch"]> = {}) {
  const seen: string[] = [];
  const memory = newMemory();
  const deps: LookDeps = {
    watch: { since: null, label: "io", mention: null, reviews: true, ...watch },
    forge: {
      ...{ changedSince: async () => [issue], permissionOf: async () => "write", checks: async () => [] },
      ...{ reviews: async () => [], threads: async () => [], comments: async () => [], pull: async () => pull },
      ...forge,
    } as unknown as Forge,
    ...{ pulls: [{ id: "p", state: "open", number: 2, commit: "abc" } as PullRow], memory },
    see: ({ kind, externalId }) => seen.push(`${kind} ${externalId}`),
    ...{ onPull: () => undefined, onWord: () => undefined, onChecks: () => undefined },
  };
  return { seen, again: () => lookAtRepository(deps) };
}

test("a review is seen though the list of changes does not tell of it, or tells late", async () => {
  const reviews: Awaited<ReturnType<Forge["reviews"]>> = [];
  const { seen, again } = look({ reviews: async () => reviews });
  for (let times = 0; times < 3; times += 1) await again();
  expect(seen).toEqual([]);
  const at = new Date().toISOString();
  reviews.push({ id: "7", verdict: "changes requested", body: "rename it", author: "mona", commit: "abc", at });
  await again();
  expect(seen).toEqual(["review 7"]);
});

test("a token that may not read checks keeps nobody from answering reviews, and the watch says why checks are not seen", async () => {
  const review = { id: "7", verdict: "changes requested", body: "rename it", author: "mona", commit: "abc" } as const;
  const { seen, again } = look({
    reviews: async () => [{ ...review, at: new Date().toISOString() }],
    checks: () => Promise.reject(new ForgeError("forbidden", "it does not allow this to the token")),
  });
  expect((await again()).saw).toMatch(/checks cannot be read: it does not allow this to the token$/);
  expect(seen).toEqual(["review 7"]);
});

test("a label is seen though the issue's last change is the same as before", async () => {
  const labels: string[] = [];
  const { seen, again } = look({
    changedSince: async () => [{ ...issue, labels: [...labels] }],
    labelings: async () => labels.map((label) => ({ id: "3", label, by: "mona", at: "" })),
  });
  for (let times = 0; times < 3; times += 1) await again();
  labels.push("io");
  await again();
  expect(seen).toEqual(["label 3"]);
});

test("an issue whose events could not be read is looked at again until they can", async () => {
  let failures = 3;
  const { seen, again } = look({
    changedSince: async () => [{ ...issue, labels: ["io"] }],
    labelings: async () => {
      if (failures-- > 0) throw new Error("the connection was cut");
      return [{ id: "3", label: "io", by: "mona", at: "" }];
    },
  });
  for (let times = 0; times < 3; times += 1) await expect(again()).rejects.toThrow("cut");
  await again();
  expect(seen).toEqual(["label 3"]);
});

test("what happens in the second of an earlier change is seen, and the next look begins before that second", async () => {
  let texts = ["@io-bot first"];
  let asked = 0;
  const comments = async () => {
    asked += 1;
    return texts.map((body, index) => ({
      ...{ id: String(index), body, author: "mona" },
      url: "",
      createdAt: "",
      updatedAt: "",
    }));
  };
  const { seen, again } = look({ comments, pull: async () => ({ ...pull, state: "closed" }) }, { mention: "@io-bot" });
  expect((await again()).since).toBe("2026-01-02T03:03:05Z");
  texts = [...texts, "@io-bot second"];
  await again();
  expect(seen).toEqual(["mention 0", "mention 0", "mention 1"]);
  // After that it is not read again until it changes.
  await again();
  expect(asked).toBe(2);
});
