import { dirname } from "node:path";
import type { TestSpecification } from "vitest/node";

/** Files that take over a minute. Whichever of them began last would be waited for alone. */
const LONG = [
  ...["walls/sweep", "walls/budgets", "telegram/outage", "web/access", "web/keyboard", "web/work", "forge/pulls"],
  ...["repositories/compiled", "repositories/monorepo", "repositories/node", "repositories/verdicts", "lock-changes"],
  ...["wire/aimock", "wire/windows", "swarm/outcomes", "screens/rendering"],
  ...["repeated.crash", "after-steps.crash", "before-writing.crash", "power-cut.crash"],
];
const isLong = ({ moduleId }: Pick<TestSpecification, "moduleId">) => LONG.some((name) => moduleId.includes(name));

export function longFirst<T extends Pick<TestSpecification, "moduleId">>(files: readonly T[]): T[] {
  return [...files.filter(isLong), ...files.filter((file) => !isLong(file))];
}

/**
 * One of `count` shares that take about as long as each other: the long files are dealt out in turn, then the others folder by
 * folder, because the tests of one folder start the same programs.
 */
export function shareOf<T extends Pick<TestSpecification, "moduleId">>(files: readonly T[], index: number, count: number): T[] {
  const placeOf = ({ moduleId }: T) => `${dirname(moduleId)}\0${moduleId}`;
  const inOrder = [...files].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
  return longFirst(inOrder).filter((_, at) => at % count === index - 1);
}
