/** The state of a repository, for both fake forges. */
export interface ForgeRepo {
  defaultBranch: string;
  archived: boolean;
  /** Whether it belongs to an organization rather than a person. */
  isOfOrganization: boolean;
  permissions: Record<string, "admin" | "write" | "read">;
  issues: DoubleIssue[];
  pulls: DoublePull[];
  labels: string[];
  events: { id: number; issue: number; label: string; by: string; at: string }[];
  comments: { id: number; issue: number; by: string; body: string; at: string }[];
  reviews: { id: number; pull: number; by: string; state: string; body: string; commit: string; at: string }[];
  threads: {
    id: number;
    pull: number;
    review: number;
    by: string;
    body: string;
    path: string;
    line: number;
    replyTo?: number;
    at: string;
  }[];
  checks: { id: number; commit: string; name: string; status: string; conclusion: string | null; log: string }[];
}

export interface DoubleIssue {
  number: number;
  title: string;
  body: string;
  by: string;
  state: "open" | "closed";
  labels: string[];
  at: string;
}

export interface DoublePull extends DoubleIssue {
  head: string;
  headRepo: string;
  base: string;
  draft: boolean;
  mergedAt: string | null;
  /** Null until the forge has found out. */
  mergeable: boolean | null;
}

export function newRepo(permissions: ForgeRepo["permissions"]): ForgeRepo {
  return {
    ...{
      defaultBranch: "main",
      archived: false,
      isOfOrganization: false,
      permissions,
      issues: [],
      pulls: [],
      labels: ["bug", "io"],
    },
    ...{ events: [], comments: [], reviews: [], threads: [], checks: [] },
  };
}

export const nextNumber = ({ issues, pulls }: ForgeRepo) => Math.max(0, ...[...issues, ...pulls].map(({ number }) => number)) + 1;
