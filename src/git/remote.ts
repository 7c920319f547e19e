import type { Git } from "./command.ts";

/** Where a checkout's work is pushed, as far as it is known. */
export interface Remote {
  /** `owner/name`, preceded by the host if that is not github.com. */
  repo?: string;
  branch?: string;
}

const ADDRESS =
  /^(?:(?:https?|ssh|git):\/\/(?:[^@/\s]{0,200}@)?|[\w.-]{1,100}@)([\w.-]{1,200})(?::\d{1,5})?[:/]([\w.-]{1,100})\/([\w.-]{1,100}?)(?:\.git)?\/?$/;
const PREFERRED = ["upstream", "github", "origin"];

/** The remotes of a checkout with their addresses, as written in its settings. */
export async function remotesOf(git: Git, folder: string): Promise<{ name: string; url: string }[]> {
  const remotes = await git.run(folder, ["config", "-z", "--get-regexp", "^remote\\..*\\.url$"]);
  return remotes.stdout.split("\0").flatMap((entry) => {
    const [, name, url] = /^remote\.(.*)\.url\n(.*)$/s.exec(entry) ?? [];
    return name !== undefined && url !== undefined ? [{ name, url }] : [];
  });
}

/** The repository that a folder's remotes name, in the order that `gh` prefers, and the current branch. */
export async function remoteOf(git: Git, folder: string): Promise<Remote> {
  const [remotes, head] = await Promise.all([remotesOf(git, folder), git.run(folder, ["symbolic-ref", "-q", "--short", "HEAD"])]);
  const found = remotes.flatMap(({ name, url }) => {
    const [, host = "", owner, repo] = ADDRESS.exec(url) ?? [];
    return owner && repo ? [{ name, repo: `${host === "github.com" ? "" : `${host}/`}${owner}/${repo}` }] : [];
  });
  const [repo = found[0]] = PREFERRED.flatMap((wanted) => found.filter(({ name }) => name === wanted));
  const branch = head.stdout.trim();
  return { ...(repo && { repo: repo.repo }), ...(branch !== "" && { branch }) };
}
