import { openStore } from "../../src/store/open.ts";

/** Opens the database given as its argument when told to, and prints the result. */
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
