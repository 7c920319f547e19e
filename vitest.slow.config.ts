import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import everything, {
  CRASHES,
  FIRST_HOUR,
  PROVIDERS,
  REPOSITORIES,
  SCREENS,
  SWARM,
  TELEGRAM,
  WALLS,
  WEB,
  WORKERS,
} from "./vitest.config.ts";

/** Files that take over a minute. Whichever of them began last would be waited for alone. */
const LONG = [
  ...["walls/sweep", "telegram/outage", "web/access", "repositories/compiled", "wire/aimock", "wire/windows"],
  ...["repeated.crash", "after-steps.crash", "before-writing.crash", "swarm/outcomes", "screens/rendering"],
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((name) => moduleId.includes(name));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** All that `npm test` leaves out, in one go, which takes three quarters of the time of one kind after the other. */
export default defineConfig({
  test: {
    ...everything.test,
    include: [...PROVIDERS, ...SCREENS, SWARM, REPOSITORIES, WALLS, TELEGRAM, WEB, FIRST_HOUR, CRASHES, ...WORKERS],
    exclude: [],
    testTimeout: 300_000,
    globalSetup: ["test/support/slow-setup.ts", "test/support/global-setup.ts"],
    sequence: { sequencer: LongFirst },
  },
});
