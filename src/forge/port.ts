/** A user's permission in a repository. */
export type Permission = "none" | "read" | "write" | "admin";

export interface Repository {
  /** `owner/name`, as the forge has it now; the repository may have been renamed. */
  fullName: string;
  defaultBranch: string;
  /** Whether the token may push to the repository. */
  canPush: boolean;
  isArchived: boolean;
}

export interface Issue {
  number: number;
  title: string;
  body: string;
  author: string;
  isOpen: boolean;
  isPull: boolean;
  labels: string[];
  updatedAt: string;
}

/** The event of a label being added to an issue. */
export interface Labeling {
  id: string;
  label: string;
  by: string;
  at: string;
}

export interface Comment {
  id: string;
  body: string;
  author: string;
  url: string;
  createdAt: string;
  updatedAt: string;
}

export interface Pull {
  number: number;
  url: string;
  title: string;
  body: string;
  state: "open" | "closed" | "merged";
  isDraft: boolean;
  /** Null while the forge does not know; also false while Gitea still checks. */
  isMergeable: boolean | null;
  /** The proposed branch, its repository and its last commit. */
  head: { branch: string; repo: string | null; commit: string };
  base: string;
  labels: string[];
}

export interface NewPull {
  title: string;
  body: string;
  /** The proposed branch, written `owner:branch` if it is in another repository. */
  head: string;
  base: string;
  isDraft: boolean;
}

export interface Review {
  id: string;
  verdict: "approved" | "changes requested" | "commented" | "dismissed" | "pending";
  body: string;
  author: string;
  commit: string;
  at: string;
}

/** A review comment on a line of a pull request. */
export interface ThreadComment extends Comment {
  path: string;
  line: number | null;
  /** Whether the line is one that the pull request removes, so that its commit does not have it. */
  isOnRemoved: boolean;
  /** The ID of the comment that this one answers, if the forge says so. */
  replyTo: string | null;
}

export interface Check {
  id: string;
  name: string;
  /** `undecided`: the check has ended without a verdict on the commit, because it was cancelled or replaced. */
  state: "running" | "passed" | "failed" | "undecided";
  url: string | null;
  /** The forge's own summary of the result. */
  summary: string;
  /** Whether `log` may return more than the summary. */
  hasLog: boolean;
}

/**
 * One repository on a forge. Reads are retried while the forge is busy. A request that changes something is sent once; if it
 * fails with a `ForgeError` of kind `uncertain`, nobody knows whether it arrived.
 */
export interface Forge {
  kind: "github" | "gitea";
  repository(): Promise<Repository>;
  permissionOf(login: string): Promise<Permission>;
  issue(number: number): Promise<Issue>;
  /** Issues and pull requests changed since a time, oldest change first; without a time, the open ones. */
  changedSince(since: string | undefined): Promise<Issue[]>;
  /** Who added which label to an issue, oldest first. */
  labelings(number: number): Promise<Labeling[]>;
  addLabels(number: number, labels: readonly string[]): Promise<void>;
  comments(number: number): Promise<Comment[]>;
  comment(number: number, body: string): Promise<Comment>;
  /** The newest pull request from one branch to another; an open one is preferred. */
  findPull(from: { owner: string; branch: string }, base: string): Promise<Pull | undefined>;
  pull(number: number): Promise<Pull>;
  openPull(pull: NewPull): Promise<Pull>;
  changePull(number: number, change: { title?: string; body?: string }): Promise<Pull>;
  reviews(number: number): Promise<Review[]>;
  threads(number: number): Promise<ThreadComment[]>;
  /** Replies in the thread of a comment. */
  reply(number: number, comment: ThreadComment, body: string): Promise<void>;
  checks(commit: string): Promise<Check[]>;
  /** The end of a check's log. */
  log(check: Check): Promise<string>;
}
