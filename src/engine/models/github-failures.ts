import type { TurnErrorCode } from "../../protocol/turns.ts";
import type { RuntimeTrouble, TurnError } from "./failures.ts";
import type { GitHubLogin } from "./github.ts";

const NO_NETWORK =
  /error sending request|network fetch failed|"kind":"network"|timed out|did not answer|fetch failed|ENOTFOUND|EAI_AGAIN|ECONN/i;
const NOT_GITHUB = /Invalid Copilot user response/i;
const NO_SUBSCRIPTION = /not licensed|no access to (?:github )?copilot|subscription|subscribe|sign ?up/i;
const SINGLE_SIGN_ON = /\bSAML\b|\bSSO\b|single sign-on/i;
const TOKEN_WITHOUT_PERMISSION = /Copilot Requests|personal access token|by integration/i;

/** Classifies a GitHub Copilot failure by its status and message, and names the login; undefined if it is not about GitHub. */
export function explainGitHub(failure: RuntimeTrouble, login: GitHubLogin): TurnError | undefined {
  const { name, variable } = login;
  const host = login.host ?? "github.com";
  const status = statusOf(failure);
  const words = wordsOf(failure);
  const say = (code: TurnErrorCode, what: string, advice: string): TurnError => {
    const said = [status && `HTTP ${status}`, words].filter(Boolean).join(": ");
    return { code, message: `${what}${said && ` (${said})`}. ${advice}.` };
  };
  const another = variable
    ? `set ${variable} to another token and restart IO`
    : "log in as somebody else with `copilot login`, or set COPILOT_GITHUB_TOKEN, and restart IO";

  if (status === 401) {
    const renew = variable ? `Set ${variable} to a valid token` : "Run `copilot login` again, or set COPILOT_GITHUB_TOKEN";
    return say("unauthorized", `GitHub did not accept ${name}: it is wrong, expired or revoked`, `${renew}, and restart IO`);
  }
  if (status === 402 || failure.errorType === "quota")
    return say(
      "unpaid",
      `the GitHub Copilot quota of ${name} is used up`,
      `Wait until it is renewed, raise the limit at ${host}/settings/copilot, or use another model`,
    );
  if (status === 429 || failure.errorType === "rate_limit")
    return say("rate_limited", `GitHub Copilot limits the rate of ${name}`, "Wait a little and try again, or use another model");
  if (isIdentity(failure, status) || (status === 403 && NO_SUBSCRIPTION.test(words)))
    return say(
      "unauthorized",
      `GitHub Copilot is not there for ${name}: the account has no subscription, or nobody gave it a seat`,
      `Get one at ${host}/settings/copilot, or ${another}`,
    );
  if (status === 403 && SINGLE_SIGN_ON.test(words))
    return say(
      "unauthorized",
      `an organization asks for single sign-on before it lets ${name} in`,
      `Authorize it at ${host}/settings/tokens or ${host}/settings/applications, then try again`,
    );
  if (status === 403 && TOKEN_WITHOUT_PERMISSION.test(words))
    return say(
      "unauthorized",
      `${name} may not use GitHub Copilot: it lacks a permission`,
      'Give a fine-grained token the permission "Copilot Requests", or log in with `copilot login`',
    );
  if (status === 403)
    return say(
      "unauthorized",
      `GitHub Copilot forbids this to ${name}, by a policy of the organization or the account`,
      `See ${host}/settings/copilot, ask who administers it, or use another model`,
    );
  if (status !== undefined && status >= 500)
    return say("failing", `GitHub fails to answer ${name}`, "Try again later; www.githubstatus.com tells of troubles");
  if (NOT_GITHUB.test(failure.message))
    return {
      code: "unreachable",
      message: `something other than GitHub answered for ${host}, asked with ${name}. Check the proxy, and whether this network wants you to log in first.`,
    };
  if (status === undefined && NO_NETWORK.test(failure.message))
    return {
      code: "unreachable",
      message: `GitHub could not be reached with ${name}: there is no way to ${host} from here. Check the network, and HTTPS_PROXY if you need a proxy.`,
    };
  return undefined;
}

/** Whether GitHub knows the account, but not as a Copilot user. */
function isIdentity({ message }: RuntimeTrouble, status: number | undefined): boolean {
  return status === 404 && /user info/i.test(message);
}

function statusOf({ statusCode, message }: RuntimeTrouble): number | undefined {
  const found = statusCode ?? /user info: (\d{3})\b|"status":(\d{3})\b/.exec(message)?.slice(1).find(Boolean);
  return found === undefined ? undefined : Number(found);
}

/** GitHub's own message, unwrapped from the runtime's. */
function wordsOf({ message, detail }: RuntimeTrouble): string {
  for (const text of [detail, message]) {
    if (!text) continue;
    const quoted = /"message":"((?:[^"\\]|\\.)*)"/.exec(text.replaceAll('\\"', '"')) ?? /"body":"((?:[^"\\]|\\.)*)"/.exec(text);
    if (quoted?.[1]) return tidy(quoted[1]);
  }
  return /^(?:Request |Execution failed|Authorization error)|GenericFailure/.test(message) ? "" : tidy(message);
}

function tidy(text: string): string {
  return text
    .replace(/\\[nrt]/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .replace(/^\d{3} /, "")
    .replace(/[.:]$/, "")
    .slice(0, 300);
}
