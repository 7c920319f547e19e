import type { MessageHit } from "../../../src/protocol/messages.ts";
import type { RunSummary } from "../../../src/protocol/runs.ts";
import type { Squad, Task } from "../../../src/protocol/squads.ts";
import { at, get } from "./api.ts";
import { firstLine } from "./format.ts";

/** A place to go to, or an action. */
export interface Place {
  kind: string;
  words: string;
  to?: string;
  act?: () => void;
}

const VIEWS = ["Inbox", "Chat", "Squads", "Tasks", "Runs", "Wiki", "Skills", "Usage", "Settings"];
export const viewPlaces = (): Place[] => VIEWS.map((name) => ({ kind: "view", words: name, to: `/${name.toLowerCase()}` }));

interface Talk {
  name: string;
  title: string | null;
}
const talkPlace = ({ name, title }: Talk): Place => ({
  ...{ kind: "conversation", words: title === null ? name : `${title} (${name})`, to: `/chat/${name}` },
});

const list = <T>(path: string): Promise<T[]> =>
  get<{ items: T[] }>(path).then(
    ({ items }) => items,
    // If one list fails to load, the others are still shown.
    () => [],
  );

/** Everything with a name, as far as there are few enough to list them all. */
export async function namedPlaces(): Promise<Place[]> {
  const [talks, squads, tasks, runs, skills] = await Promise.all([
    list<Talk>("/api/conversations?limit=100"),
    list<Squad>("/api/squads"),
    list<Task>("/api/tasks?limit=100"),
    list<RunSummary>("/api/runs?limit=100"),
    list<{ slug: string; name: string }>("/api/skills"),
  ]);
  return [
    ...talks.map(talkPlace),
    ...squads.map(({ name, slug }) => ({ kind: "squad", words: name, to: `/squads/${slug}` })),
    ...tasks.map(({ id, description }) => ({ kind: "task", words: firstLine(description, 80), to: `/tasks/${id}` })),
    ...runs.map(({ id, issue }) => ({ kind: "run", words: firstLine(issue, 80), to: `/runs/${id}` })),
    ...skills.map(({ slug, name }) => ({ kind: "skill", words: name, to: `/skills/${slug}` })),
  ];
}

/** Conversations, pages and messages that contain the words, and files of a conversation's project, which are mentioned in its field. */
export async function foundPlaces(words: string, talk: string): Promise<Place[]> {
  const q = encodeURIComponent(words);
  const [talks, pages, messages, files] = await Promise.all([
    list<Talk>(`/api/conversations?limit=8&q=${q}`),
    list<{ path: string; title: string }>(`/api/wiki/search?limit=8&q=${q}`),
    list<MessageHit>(`/api/conversations/search?limit=8&q=${q}`),
    list<{ path: string }>(`${at("conversations", talk)}/files?limit=8&q=${q}`),
  ]);
  // What a report quotes stands between marks, which are for the model.
  const plain = (snippet: string) => snippet.replace(/--- (?:data|end) [\da-f]{12}/g, "").replace(/\s+/g, " ");
  const short = (path: string) => path.replace(/^pages\//, "").replace(/\.md$/, "");
  return [
    ...talks.map(talkPlace),
    ...pages.map(({ path, title }) => ({ kind: "page", words: title, to: `/wiki/${short(path)}` })),
    ...messages.map(({ id, conversation, snippet }) => ({
      kind: "message",
      words: plain(snippet),
      to: `/chat/${conversation}#${id}`,
    })),
    ...files.map(({ path }) => ({ kind: "file", words: path, to: `/chat/${talk}?mention=${encodeURIComponent(path)}` })),
  ];
}
