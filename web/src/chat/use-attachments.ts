import { computed, ref } from "vue";
import type { Attachment } from "../../../src/protocol/messages.ts";
import { messageOf, upload } from "../lib/api.ts";

/** A file being uploaded, or already uploaded. */
export interface Draft {
  key: number;
  name: string;
  file?: Attachment;
  problem?: string;
}

const MOST = 10;
const MOST_BYTES = 10_000_000;

/** The files for the next message of a conversation. Uploaded ones survive a reload. */
export function useAttachments(conversation: string) {
  const place = `io.draft.${conversation}.files`;
  const drafts = ref<Draft[]>([]);
  const coming = new Map<number, Promise<void>>();
  let keys = 0;

  const keep = () => {
    const there = drafts.value.flatMap(({ file }) => file ?? []);
    if (there.length > 0) sessionStorage.setItem(place, JSON.stringify(there));
    else sessionStorage.removeItem(place);
  };
  const change = (key: number, what: Partial<Draft>) => {
    drafts.value = drafts.value.map((draft) => (draft.key === key ? { ...draft, ...what } : draft));
    keep();
  };
  function put(files: readonly Attachment[]): void {
    const known = new Set(drafts.value.map(({ file }) => file?.id));
    const more = files.filter(({ id }) => !known.has(id)).map((file) => ({ key: ++keys, name: file.name, file }));
    drafts.value = [...drafts.value, ...more].slice(0, MOST);
    keep();
  }
  return {
    drafts,
    /** Whether there are files to send. */
    some: computed(() => drafts.value.some(({ problem }) => problem === undefined)),
    add(files: Iterable<File>): void {
      for (const file of files) {
        if (drafts.value.length >= MOST) return;
        const key = ++keys;
        // A pasted file has the browser's name for it, or none.
        const name = file.name || "pasted.png";
        drafts.value = [...drafts.value, { key, name }];
        if (file.size > MOST_BYTES) change(key, { problem: "larger than 10 MB" });
        else
          coming.set(
            key,
            upload(file, name)
              .then((there) => change(key, { file: there }))
              .catch((error: unknown) => change(key, { problem: messageOf(error) })),
          );
      }
    },
    put,
    remove(key: number): void {
      drafts.value = drafts.value.filter((draft) => draft.key !== key);
      keep();
    },
    restore: () => put(JSON.parse(sessionStorage.getItem(place) ?? "[]") as Attachment[]),
    /** Removes and returns the files to send, once all are uploaded. Files that failed to upload stay. */
    take(): Promise<Attachment[]> {
      const taken = drafts.value.filter(({ problem }) => problem === undefined).map(({ key }) => key);
      return Promise.all(taken.map((key) => coming.get(key))).then(() => {
        const gone = drafts.value.filter(({ key, file }) => taken.includes(key) && file !== undefined);
        drafts.value = drafts.value.filter((draft) => !gone.includes(draft));
        keep();
        return gone.flatMap(({ file }) => file ?? []);
      });
    },
  };
}
