import { existsSync, lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { privatePlaces } from "../../home/private-places.ts";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import { anchors } from "./anchors.ts";
import { hideOthers, shownInside } from "./data-folder.ts";
import { frozenIn, isBelow, isVisible, type MountPlan, projectFolderOf, real, type View, withinCover } from "./heights.ts";
import { CONTAINER_SOCKETS, hideHostSockets } from "./host-sockets.ts";
import { bindAll, type Grant } from "./profile.ts";
import { repositoriesOf } from "./repositories.ts";
import type { OwnTemporary } from "./temporary.ts";

export interface ProjectView extends View {
  /** The replacement of /tmp. */
  temporary: OwnTemporary;
  /** Finds the caches that the command may write. */
  cachesOf: (project: string | undefined) => Grant[];
}

/**
 * Shows the machine as the user sees it, except secrets. Writable are only the project with its repository, a temporary
 * folder, and the caches of package managers and toolchains.
 */
export function projectView({
  home,
  userHome,
  env,
  kernel,
  others,
  hostSockets,
  profile,
  cwd,
  temporary,
  cachesOf,
}: ProjectView): MountPlan {
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = placeOf(home, userHome, profile.place ?? cwd);
  const repositories = place === undefined ? [] : repositoriesOf(place);
  const caches = cachesOf(place).filter(({ path }) => !isWithin(home, path));
  const own: Grant[] = [...(place === undefined ? [] : [place]), ...repositories, ...real(profile.writable)]
    .filter((path) => !isWithin(path, userHome))
    .map((path) => ({ path, write: true }));
  const writable = [...own, ...caches];
  const frozen: Grant[] = frozenIn(profile).map((path) => ({ path, write: false }));
  const closed = frozen.filter((each) => isBelow(writable, each));
  const kept = anchors([home, ...closed.map(({ path }) => path)], closed).filter(({ path }) => isBelow(writable, { path }));
  const grants = [...writable, ...closed, ...kept];
  const shown = shownInside(home).map(({ path }) => ({ path, write: false }));
  const inside = [...shown.filter((each) => !isBelow(own, each)), ...grants.filter(isInside)];
  const hidden = [...(profile.withLogins ? [] : privateFiles(userHome)), ...containerSockets()];
  return {
    args: [
      ...["--ro-bind", "/", "/", ...temporary.args],
      ...bindAll(grants.filter((each) => !isInside(each))),
      ...[...kernel, ...hideHostSockets(hostSockets.filter(temporary.sees), env)],
      ...[...hideOthers([...others, ...hidden].filter(temporary.sees)), ...withinCover(home, inside)],
      ...["--setenv", "TMPDIR", "/tmp"],
    ],
    sees: (folder) => isVisible(home, inside, folder) && temporary.sees(folder),
  };
}

/** The project's folder; undefined if it contains the user's home. It may contain the data folder, which is hidden in it. */
function placeOf(home: string, userHome: string, folder: string): string | undefined {
  const path = realOf(folder);
  if (isWithin(path, userHome)) return undefined;
  return isWithin(path, home) && path !== home ? path : projectFolderOf(home, path);
}

/** Files and folders with keys and logins; of ~/.ssh only the keys, so that an agent still works. */
function privateFiles(userHome: string): string[] {
  return privatePlaces(userHome).flatMap((path) => {
    if (path !== join(userHome, ".ssh")) return existsSync(path) ? [realOf(path)] : [];
    const folder = realOf(path);
    return namesIn(folder).flatMap((name) =>
      /^(?:config|known_hosts.*|.*\.pub)$/.test(name) ? [] : [realOf(join(folder, name))],
    );
  });
}

function namesIn(folder: string): string[] {
  try {
    return lstatSync(folder).isDirectory() ? readdirSync(folder) : [];
  } catch {
    // Missing, or inaccessible to IO and therefore to commands.
    return [];
  }
}

/** The sockets of container engines, hidden because whoever can start a container can write everywhere. */
function containerSockets(): string[] {
  return [...new Set(CONTAINER_SOCKETS.filter((path) => existsSync(path)).map((path) => realOf(path)))].filter((path) =>
    existsSync(dirname(path)),
  );
}
