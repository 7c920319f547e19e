import { git } from "./command.ts";

/** The refs of a repository below a prefix; none where there is no repository. */
export async function refsBelow(cwd: string, prefix: string): Promise<string[]> {
  const { code, stdout } = await git(cwd, ["for-each-ref", "--format=%(refname)", prefix]);
  return code === 0 ? stdout.split("\n").filter((name) => name !== "") : [];
}

/** Deletes refs; tells whether all are gone. */
export async function deleteRefs(cwd: string, refs: readonly string[]): Promise<boolean> {
  if (refs.length === 0) return true;
  const { code } = await git(cwd, ["update-ref", "--stdin"], { input: refs.map((ref) => `delete ${ref}\n`).join("") });
  return code === 0;
}
