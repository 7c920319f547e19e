import { type GitOptions, must } from "./command.ts";

/** The difference of two trees, as a reviewer reads it. */
export async function diffOf(cwd: string, from: string, to: string, options: GitOptions = {}): Promise<string> {
  if (from === to) return "";
  const args = [
    "-c",
    "core.quotePath=false",
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "-M",
    "--stat=160",
    "--patch",
    from,
    to,
  ];
  return must(cwd, args, { maxOutput: 120_000, ...options });
}
