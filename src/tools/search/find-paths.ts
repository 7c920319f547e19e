import { createPathGuard } from "../guard.ts";
import type { FindJob, FoundPaths } from "./job.ts";
import { requestedGlob } from "./path-glob.ts";
import { walkFolder } from "./walk.ts";

export const MOST_PATHS = 500;

/** The files, folders and links below a folder whose paths match a pattern. */
export function findPaths({ root, glob, forMs, own, share, shares }: FindJob): FoundPaths {
  const until = performance.now() + forMs;
  const guard = createPathGuard({ ...own, selfEdit: () => false });
  const fits = requestedGlob(glob, root);
  const onlyFolders = glob.endsWith("/");
  const paths: string[] = [];
  let hidden: { path: string; isHidden: boolean } | undefined;
  const isHidden = (path: string) => {
    if (hidden?.path !== path) hidden = { path, isHidden: guard.refuse(path, "read", root) !== undefined };
    return hidden.isHidden;
  };
  const { left, ending } = walkFolder({
    ...{ root, share, shares },
    isLate: () => performance.now() > until,
    visit({ folder, parts, kind }) {
      if ((onlyFolders && kind !== "folder") || !fits(parts) || isHidden(folder.path)) return undefined;
      if (paths.length === MOST_PATHS) return "stopped";
      paths.push(`${parts.join("/")}${kind === "folder" ? "/" : kind === "link" ? "@" : ""}`);
      return undefined;
    },
  });
  return { paths, isFull: ending === "stopped", isLate: ending === "late", left };
}
