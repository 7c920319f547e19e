import { openStore } from "../../src/store/open.ts";

/** Opens the database of its argument when it is told to, and says how that went. */
process.stdin.once("data", () => {
  try {
    openStore(process.argv[2]!).close();
    process.stdout.write("opened");
  } catch (error) {
    process.stdout.write(String(error));
  }
  process.exit();
});
process.stdout.write("ready ");
