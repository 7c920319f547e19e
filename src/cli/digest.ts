import type { Command } from "commander";
import { formatDigest } from "../protocol/digest-text.ts";
import type { Digest } from "../protocol/news.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

/** `io digest`: what happened in a period. */
export function digestCommand(program: Command, shell: Shell): void {
  program
    .command("digest")
    .description("what was done, what failed, what waits and what it cost")
    .option("--since <time>", "a length of time such as 24h or 7d, or a date", "24h")
    .option(...JSON_OPTION)
    .action(async ({ json, since }: Json & { since: string }) => {
      const digest = await shell.client().request<Digest>("GET", `/api/digest?since=${encodeURIComponent(since)}`);
      shell.print(digest, () => formatDigest(digest), { json });
    });
}
