export type Files = Record<string, string | null>;

/** A change of files, and whether it reduces what the tests would notice. */
export interface Case {
  name: string;
  before: Files;
  after: Files;
  isFound: boolean;
}

/** Collects changes, most of which edit one file. */
export function collectCases() {
  const cases: Case[] = [];
  const files = (isFound: boolean) => (name: string, before: Files, after: Files) =>
    void cases.push({ name, before, after, isFound });
  const edits = (isFound: boolean) => (name: string, path: string, text: string, edit: (text: string) => string) => {
    if (edit(text) === text) throw new Error(`${name} changes nothing`);
    files(isFound)(name, { [path]: text }, { [path]: edit(text) });
  };
  return { cases, weakens: edits(true), leaves: edits(false), weakensFiles: files(true), leavesFiles: files(false) };
}

export const r = (from: string | RegExp, to: string) => (text: string) => text.replace(from, to);
