import { codeOf, UserError } from "./errors.ts";

const REMEDIES: Record<string, [string, string]> = {
  EACCES: ["may not be used by you", "Check its owner and mode"],
  EPERM: ["may not be used by you", "Check its owner and mode"],
  EROFS: ["is on a disk that cannot be written", "Mount it writable, or use another folder"],
  ENOSPC: ["cannot be written: the disk is full", "Free some space and try again"],
  EDQUOT: ["cannot be written: your share of the disk is used up", "Free some space and try again"],
  ENOTDIR: ["is or lies below a file where a folder is needed", "Move that file away, or use another folder"],
  EEXIST: ["is a file where a folder is needed", "Move that file away, or use another folder"],
  EISDIR: ["is a folder where a file is needed", "Move that folder away, or use another file"],
  ENOENT: ["is not there", "Check its name"],
  EMFILE: ["cannot be opened: too many files are open", "Raise the limit (ulimit -n) and try again"],
  EIO: ["cannot be read or written: the disk reports an error", "Check the disk"],
};

/** A failure of the file system as a sentence that names the file and what to do; undefined for any other error. */
export function fileError(error: unknown): UserError | undefined {
  const code = codeOf(error);
  const remedy = code === undefined ? undefined : REMEDIES[code];
  if (!remedy || !(error instanceof Error)) return undefined;
  const [what, advice] = remedy;
  return new UserError(`${pathIn(error) ?? "A file"} ${what} (${code}). ${advice}.`, { cause: error });
}

/** A write through an open file fails without naming it. */
function pathIn(error: Error): string | undefined {
  if ("path" in error && typeof error.path === "string") return error.path;
  return undefined;
}
