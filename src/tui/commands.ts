import type { Client } from "../client/client.ts";
import { describeStatus } from "../client/status.ts";
import type { Status, Stopped } from "../protocol/api.ts";
import { decideApproval, waitingApprovals } from "./approvals.ts";

export interface CommandDeps {
  client: Client;
  say: (text: string) => void;
}

const HELP = `  /stop        end everything that runs     /status     what IO is doing
  /approvals   what waits for you           /allow <id> let it be done
  /deny <id>   refuse it; more words are a note to the model
  /help        this                         /exit       leave (IO goes on)`;

/** Does what a line that begins with a slash says; false to leave. */
export async function runCommand(text: string, { client, say }: CommandDeps): Promise<boolean> {
  const [name = "", ...args] = text.split(/\s+/);
  switch (name) {
    case "/exit":
    case "/quit":
      return false;
    case "/stop": {
      const { messages, tasks, runs } = await client.request<Stopped>("POST", "/api/stop");
      say(`stopped: ${messages} messages, ${tasks} tasks, ${runs} runs\n`);
      return true;
    }
    case "/approvals":
      say(await waitingApprovals(client));
      return true;
    case "/allow":
    case "/deny":
      say(await decideApproval(client, name === "/allow" ? "allow" : "deny", args));
      return true;
    case "/status":
      say(`${describeStatus(await client.request<Status>("GET", "/api/status"), client.url)}\n`);
      return true;
    default:
      say(`${HELP}\n`);
      return true;
  }
}
