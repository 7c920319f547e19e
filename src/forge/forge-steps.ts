import { UserError } from "../lib/errors.ts";
import type { PullRow, PullRows } from "../store/pulls.ts";
import { ForgeError } from "./client.ts";
import type { ForgePlace } from "./find.ts";
import type { Forge, Pull } from "./port.ts";
import type { Proposal } from "./proposal.ts";
import type { Pusher } from "./push.ts";
import { isMarked } from "./text.ts";

/** Everything needed to push a branch and open or update its pull request. */
export interface Situation {
  row: PullRow;
  place: ForgePlace;
  forge: Forge;
  token: string;
  proposal: Proposal;
  base: string;
  signal: AbortSignal;
}

const plain = (text: string) => text.replaceAll("\r\n", "\n").trim();

/** Whether the pull request's text can stay: it matches, or a person has rewritten it and so removed IO's mark. */
export const isUpToDate = (there: string, wanted: string): boolean => !isMarked(there) || plain(there) === plain(wanted);

/**
 * The requests that change something at a forge. Each first checks whether it is still needed, so it can safely be repeated.
 */
export function createForgeSteps({ rows, pusher }: { rows: PullRows; pusher: Pusher }) {
  /**
   * Sends one request that changes something. It is recorded before it is sent, and if it fails, the forge is checked for its
   * effect.
   */
  async function send<T>(
    pull: string,
    action: string,
    detail: object,
    { perform, lookUp }: { perform: () => Promise<T>; lookUp: () => Promise<T | undefined> },
  ): Promise<T> {
    const seq = rows.beginRequest(pull, action, detail);
    try {
      const result = await perform();
      rows.finishRequest(seq, "done", null);
      return result;
    } catch (error) {
      const isRefused = error instanceof UserError && !(error instanceof ForgeError && error.kind === "uncertain");
      // If somebody else was faster, the forge refuses the second request.
      const found = await lookUp().catch(() => undefined);
      if (found !== undefined) {
        rows.finishRequest(seq, "done", "found at the forge");
        return found;
      }
      rows.finishRequest(seq, isRefused ? "failed" : "unknown", error instanceof UserError ? error.message : null);
      throw error;
    }
  }

  async function push({ row, place, token, proposal, signal }: Situation): Promise<void> {
    const { branch, commit, objects } = proposal;
    const to = { url: place.gitUrl, token, signal };
    const isThere = async () => ((await pusher.head(branch, to)) === commit ? true : undefined);
    // Git does not send again what the remote already has.
    await send(
      row.id,
      "push",
      { repo: place.headRepo, branch, commit },
      {
        lookUp: isThere,
        async perform() {
          const pushed = await pusher.push({ branch, commit, objects }, to);
          if ("commit" in pushed) return true;
          const said = `${place.host} did not take the push of ${branch}: ${pushed.reason}`;
          if (pushed.isRefused) throw new UserError(`${said}. Nothing was forced; the branch is as it was.`);
          throw new ForgeError("uncertain", said);
        },
      },
    );
  }

  /** Opens the pull request, or updates the text of the existing one. */
  async function propose({ row, place, forge, proposal, base }: Situation, existing: Pull | undefined, isDraft: boolean) {
    const { branch, title, body } = proposal;
    const [owner = ""] = place.headRepo.split("/");
    const find = () => forge.findPull({ owner, branch }, base);
    if (existing === undefined) {
      const head = place.headRepo === place.repo ? branch : `${owner}:${branch}`;
      return send(
        row.id,
        "open",
        { repo: place.repo, head, base },
        {
          perform: () => forge.openPull({ title, body, head, base, isDraft }),
          lookUp: find,
        },
      );
    }
    // Keep the text if a person has rewritten it.
    if (isUpToDate(existing.body, body)) return existing;
    return send(
      row.id,
      "change",
      { repo: place.repo, number: existing.number },
      {
        perform: () => forge.changePull(existing.number, { body }),
        lookUp: async () => {
          const now = await forge.pull(existing.number);
          return plain(now.body) === plain(body) ? now : undefined;
        },
      },
    );
  }

  async function label({ row, place, forge }: Situation, { number, labels }: Pull): Promise<string | null> {
    const wanted = row.labels.filter((name) => !labels.some((each) => each.toLowerCase() === name.toLowerCase()));
    if (wanted.length === 0) return null;
    try {
      await send(
        row.id,
        "label",
        { repo: place.repo, number, labels: wanted },
        {
          async perform() {
            await forge.addLabels(number, wanted);
            return true;
          },
          lookUp: async () => {
            const now = await forge.pull(number);
            return wanted.every((name) => now.labels.includes(name)) || undefined;
          },
        },
      );
      return null;
    } catch (error) {
      // A missing label is no reason to fail: the pull request itself exists.
      if (error instanceof ForgeError) return `the labels could not be set: ${error.message}`;
      throw error;
    }
  }

  return { push, propose, label };
}

/** Settles the requests that an earlier process sent without getting a response. */
export function settleEarlier(rows: PullRows, row: PullRow, existing: Pull | undefined, pushed: string | undefined): void {
  for (const { seq, action, state, detail } of rows.requests(row.id)) {
    if (state !== "begun") continue;
    const isPushed = action === "push" && pushed !== undefined && detail.includes(pushed);
    const isThere = isPushed || (action === "open" && existing !== undefined);
    rows.finishRequest(seq, isThere ? "done" : "unknown", isThere ? "found at the forge after a restart" : "IO ended meanwhile");
  }
}
