import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMessageSearch, type SaidQuery } from "../../src/store/message-search.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { temporaryFolder } from "../support/home.ts";
import { soon } from "../support/soon.ts";

const MANY = 100_000;
let store: Store;
beforeAll(() => {
  store = openStore(join(temporaryFolder(afterAll), "io.db"));
  // Insert in bulk, without the triggers that maintain other tables.
  store.db.exec(`DROP TRIGGER message_added;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY})
    INSERT INTO messages (id, conversation, source, text, status, reply, created_at)
    SELECT 'm_' || i, 'c' || (i % 50), '{"channel":"api"}', 'question ' || i || ' ' || hex(randomblob(60)), 'done',
      'answer ' || i || ' ' || hex(randomblob(200)), strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + i, 'unixepoch') FROM n;
    UPDATE messages SET text = 'My code is BLUE-7731, and 100% sure_of it.' WHERE id = 'm_7';
    UPDATE messages SET reply = 'Žluťoučký kůň is written so.' WHERE id = 'm_50000';
    INSERT INTO steers (message_id, text, created_at) VALUES ('m_60000', 'no, the blue parrot', '2026-01-01T00:00:00.000Z');
    INSERT INTO squads (slug, name, project_path, universe, created_at, updated_at)
      VALUES ('web', 'Web', '/srv/web', 'none', '2026-01-01', '2026-01-01');
    INSERT INTO agent_tasks (id, squad_slug, agent, description, status, result, origin, created_at)
      VALUES ('t_1', 'web', 'Ada', 'paint it turquoise', 'done', 'It is turquoise now.', '{"conversation":"c9"}', '2026-01-01T00:00:00.000Z');`);
}, 120_000);
afterAll(() => store.close());

const find = (query: string, more: Partial<SaidQuery> = {}) =>
  createMessageSearch(store)({ query, limit: 5, tasks: true, ...more }).then((hits) => hits.map(({ id }) => id));

test.each([
  ["the oldest message of a hundred thousand, in any case", "blue-7731", {}, ["m_7"]],
  ["wildcards, taken literally", "100% sure_of", {}, ["m_7"]],
  ["wildcards that match nothing else", "100%sure_of", {}, []],
  ["letters that are not ASCII, in capitals", "ŽLUŤOUČKÝ", {}, ["m_50000"]],
  ["text that was added to a running turn", "the blue parrot", {}, ["m_60000"]],
  ["a task by its words", "turquoise", {}, ["t_1"]],
  ["all words, not adjacent", "7731 code sure", {}, ["m_7"]],
  ["one conversation alone", "question", { conversation: "c3", limit: 2 }, ["m_99953", "m_99903"]],
  ["another conversation", "blue-7731", { conversation: "c8" }, []],
  ["a task of a conversation", "turquoise", { conversation: "c9" }, ["t_1"]],
  ["everything except the searching message", "blue-7731", { except: "m_7" }, []],
] as [string, string, Partial<SaidQuery>, string[]][])("a search finds %s", async (_, query, more, ids) => {
  expect(await find(query, more)).toEqual(ids);
});

test("the newest come first, up to the limit", async () => {
  expect(await find("question", { limit: 3 })).toEqual(["m_100000", "m_99999", "m_99998"]);
});

test("a search through everything does not block the event loop", async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const started = performance.now();
  expect(await find("nobody ever said this")).toEqual([]);
  isOver = true;
  expect(turns).toBeGreaterThan(5);
  expect(performance.now() - started).toBeLessThan(soon(10_000));
});

test("a few very long messages do not make one step long", async () => {
  store.db.exec("UPDATE messages SET reply = hex(zeroblob(400000)) WHERE seq > 99900");
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const watch = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
    if (!isOver) setImmediate(watch);
  };
  setImmediate(watch);
  const started = performance.now();
  await find("nobody ever said this either");
  isOver = true;
  // Compare each step with the total: on a busy machine all steps are slow.
  expect(longest).toBeLessThan(Math.max(100, (performance.now() - started) / 2));
});
