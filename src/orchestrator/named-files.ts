import { basename } from "node:path";
import { pictureTypeOf } from "../lib/file-type.ts";
import { contentOf, namedIn } from "../lib/named-files.ts";
import { readPlainAt } from "../lib/pinned/read.ts";
import type { Source } from "../protocol/messages.ts";
import type { Attachments } from "../store/attachments.ts";
import type { Messages } from "../store/messages.ts";
import type { Inbox, Submission } from "./inbox.ts";

export interface NamedFilesDeps {
  attachments: Pick<Attachments, "add" | "find">;
  messages: Pick<Messages, "findByKey">;
  /** The real path of a file that a person names in a conversation; undefined if IO must not read it there for them. */
  placeOf: (name: string, conversation: string, source: Source) => string | undefined;
  /** Redacts secrets. */
  clean: (text: string) => string;
}

/** The channels in which a person types; messages of programs and schedules stay as they are. */
const TYPED: readonly string[] = ["tui", "web", "api", "telegram"] satisfies Source["channel"][];
const MOST_FILES = 10;
const MOST_PICTURE_BYTES = 10_000_000;
/** The terminal itself sends the files that are named there, even from outside the project. */
const SENT_ALONG = "\n\n[attached by the user, as data:]\n";

/** An inbox that attaches the files and folders which a message mentions with an at-sign, with their content at that time. */
export function attachingNamed(inbox: Inbox, deps: NamedFilesDeps): Inbox {
  const withNamed = (submission: Submission): Submission => {
    const named = attachNamed(submission, deps);
    return named.length === 0 ? submission : { ...submission, attachments: [...(submission.attachments ?? []), ...named] };
  };
  return {
    ...inbox,
    submit: (submission) => inbox.submit(withNamed(submission)),
    ask: (submission) => inbox.ask(withNamed(submission)),
  };
}

/** Returns the ids of the new attachments. */
function attachNamed(submission: Submission, { attachments, messages, placeOf, clean }: NamedFilesDeps): string[] {
  const { text, conversation, source, idempotencyKey, attachments: given = [] } = submission;
  if (!TYPED.includes(source.channel) || !text.includes("@") || text.includes(SENT_ALONG)) return [];
  // A repeated message was submitted before, with its files of that time.
  if (idempotencyKey !== undefined && messages.findByKey(idempotencyKey)) return [];
  const known = new Set(given.map((id) => attachments.find(id)?.name));
  const places = namedIn(text).flatMap((name) => {
    const place = placeOf(name, conversation, source);
    return place === undefined || known.has(basename(place)) ? [] : [place];
  });
  return [...new Set(places)].slice(0, Math.max(0, MOST_FILES - given.length)).flatMap((place) => {
    const bytes = pictureAt(place) ?? textAt(place, clean);
    return bytes ? [attachments.add(basename(place), bytes, "named").id] : [];
  });
}

function pictureAt(place: string): Uint8Array | undefined {
  const read = readPlainAt(place, MOST_PICTURE_BYTES);
  return "bytes" in read && pictureTypeOf(read.bytes) ? read.bytes : undefined;
}

function textAt(place: string, clean: (text: string) => string): Uint8Array | undefined {
  const text = contentOf(place);
  return text === undefined ? undefined : Buffer.from(clean(text));
}
