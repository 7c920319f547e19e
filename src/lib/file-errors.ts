import { codeOf, UserError } from "./errors.ts";

/** Error codes that concern the disk, not the file that was asked for. */
const OF_THE_DISK = ["ENOSPC", "EDQUOT", "EROFS", "EIO", "EMFILE"];
const FULL = ["ENOSPC", "EDQUOT"];

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
  EFBIG: ["would become larger than files may be here", "Raise the limit (ulimit -f) or use another disk"],
  ENAMETOOLONG: ["has a name that is too long", "Use a shorter one"],
  ELOOP: ["is a link that leads nowhere, or passes one that may not be followed", "Name the file itself"],
  EBUSY: ["is in use", "Let the program that uses it end, and try again"],
  EXDEV: ["cannot be moved to another disk", "Use a place on the same disk"],
  EIO: ["cannot be read or written: the disk reports an error", "Check the disk"],
};

/** Turns a file system error into a sentence that names the file and what to do; undefined for any other error. */
export function fileError(error: unknown): UserError | undefined {
  const code = codeOf(error);
  const remedy = code === undefined ? undefined : REMEDIES[code];
  if (!remedy || !(error instanceof Error)) return undefined;
  const [what, advice] = remedy;
  return new UserError(`${pathIn(error) ?? "A file"} ${what} (${code}). ${advice}.`, {
    cause: error,
    ...(OF_THE_DISK.includes(code!) && { trouble: "unavailable" }),
    ...(FULL.includes(code!) && { code: "disk_full" }),
  });
}

/** Adds the file's path to an error, since the system names no file when a write through an open file fails. */
export function withPath(error: unknown, path: string): unknown {
  return error instanceof Error && codeOf(error) !== undefined && !("path" in error) ? Object.assign(error, { path }) : error;
}

/** Turns any system error into a sentence. People can fix a missing, full or forbidden path; a stack trace does not help them. */
export function systemError(error: unknown): UserError | undefined {
  const known = fileError(error);
  if (known || !(error instanceof Error) || !("syscall" in error)) return known;
  const what = pathIn(error) ?? (typeof error.syscall === "string" ? error.syscall : "the system");
  const said = error.message.replace(/^\w+: /, "").split(",", 1)[0];
  return new UserError(`${what}: the system says ${said} (${codeOf(error) ?? "no code"}).`, { cause: error });
}

function pathIn(error: Error): string | undefined {
  if ("path" in error && typeof error.path === "string") return error.path;
  return undefined;
}
