import type { Git } from "./command.ts";

/** Where a checkout's work goes, as far as it says. */
export interface Remote {
  /** `owner/name`, with the host in front where that is not github.com. */
  repo?: string;
  branch?: string;
}

const ADDRESS =
  /^(?:(?:https?|ssh|git):\/\/(?:[^@/\s]{0,200}@)?|[\w.-]{1,100}@)([\w.-]{1,200})(?::\d{1,5})?[:/]([\w.-]{1,100})\/([\w.-]{1,100}?)(?:\.git)?\/?$/;
const PREFERRED = ["upstream", "github", "origin"];

/** The repository that a folder's remotes name, in the order in which `gh` chooses among them, and the branch that is checked out. */
export async function remoteOf(git: Git, folder: string): Promise<Remote> {
  const [remotes, head] = await Promise.all([
    git.run(folder, ["config", "-z", "--get-regexp", "^remote\\..*\\.url$"]),
    git.run(folder, ["symbolic-ref", "-q", "--short", "HEAD"]),
  ]);
  const found = remotes.stdout.split("\0").flatMap((entry) => {
    const [, name = "", url = ""] = /^remote\.(.*)\.url\n(.*)$/s.exec(entry) ?? [];
    const [, host = "", owner, repo] = ADDRESS.exec(url) ?? [];
    return owner && repo ? [{ name, repo: `${host === "github.com" ? "" : `${host}/`}${owner}/${repo}` }] : [];
  });
  const [repo = found[0]] = PREFERRED.flatMap((wanted) => found.filter(({ name }) => name === wanted));
  const branch = head.stdout.trim();
  return { ...(repo && { repo: repo.repo }), ...(branch !== "" && { branch }) };
}
