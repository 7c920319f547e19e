/** What a person may do in a repository. */
export type Permission = "none" | "read" | "write" | "admin";

export interface Repository {
  /** `owner/name`, as the forge has it now: a repository may have been renamed. */
  fullName: string;
  defaultBranch: string;
  /** Whether the token may push there. */
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

/** That somebody put a label on an issue. */
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
  /** The branch that is proposed, its repository and its last commit. */
  head: { branch: string; repo: string | null; commit: string };
  base: string;
  labels: string[];
}

export interface NewPull {
  title: string;
  body: string;
  /** The branch that is proposed; `owner:branch` where it is in another repository. */
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

/** A comment on lines of a pull request. */
export interface ThreadComment extends Comment {
  path: string;
  line: number | null;
  /** The comment that it answers, where the forge says so. */
  replyTo: string | null;
}

export interface Check {
  id: string;
  name: string;
  state: "running" | "passed" | "failed";
  url: string | null;
  /** What the forge itself says about its end. */
  summary: string;
  /** Whether `log` can bring more than the summary. */
  hasLog: boolean;
}

/**
 * One repository on a forge. Reads are repeated when the forge is busy; a request that changes something is sent once, and a
 * `ForgeError` of the kind `uncertain` says that nobody knows whether it arrived.
 */
export interface Forge {
  kind: "github" | "gitea";
  repository(): Promise<Repository>;
  permissionOf(login: string): Promise<Permission>;
  issue(number: number): Promise<Issue>;
  /** Issues and pull requests that changed since a moment, oldest change first; without one, those that are open. */
  changedSince(since: string | undefined): Promise<Issue[]>;
  /** Who put which label on an issue, oldest first. */
  labelings(number: number): Promise<Labeling[]>;
  addLabels(number: number, labels: readonly string[]): Promise<void>;
  comments(number: number): Promise<Comment[]>;
  comment(number: number, body: string): Promise<Comment>;
  /** The newest pull request from one branch to another. */
  findPull(from: { owner: string; branch: string }, base: string): Promise<Pull | undefined>;
  pull(number: number): Promise<Pull>;
  openPull(pull: NewPull): Promise<Pull>;
  changePull(number: number, change: { title?: string; body?: string }): Promise<Pull>;
  reviews(number: number): Promise<Review[]>;
  threads(number: number): Promise<ThreadComment[]>;
  /** Answers in the thread of a comment. */
  reply(number: number, comment: ThreadComment, body: string): Promise<void>;
  checks(commit: string): Promise<Check[]>;
  /** The end of a check's log. */
  log(check: Check): Promise<string>;
}
