import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./home.ts";
import { type Script, startAnthropic, startAzure } from "./providers/index.ts";

export const KEY = "sk-proj-right-key-for-the-tests-0000";
export const TOKEN = "github_pat_right_token_of_somebody_0123456789";
export const obeys: Script = ({ afterTool }) =>
  afterTool ? { say: "OK" } : { call: [{ tool: "report", args: { word: "ready" } }] };
/** The path of a home that was never used: not even the folder exists. */
export const bare = () => join(temporaryFolder(), "home");
export const config = (home: string) => JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as unknown;
/** Prevents the tests from finding an Ollama that happens to run on this machine. */
export const nobody = { HOME: "/nonexistent" };

/** The other kinds of provider in the contract. */
export const PROVIDERS = [
  {
    ...{
      name: "anthropic",
      title: "Anthropic",
      type: "anthropic",
      model: "claude-sonnet-4-5",
      key: "sk-ant-right-key-for-the-tests",
    },
    start: () => startAnthropic({ script: obeys }),
    address: /Its address/,
  },
  {
    ...{ name: "azure", title: "Azure OpenAI or Foundry", type: "azure", model: "mine", key: KEY },
    start: () => startAzure({ key: KEY, script: obeys, deployments: { mine: "gpt-4o" } }),
    address: /Its endpoint or target URI/,
  },
];
