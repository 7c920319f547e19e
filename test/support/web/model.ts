import { type Act, type Model, textOf } from "../../../src/engine/rehearsal/wire.ts";
import { isAfterTool, lastUserText } from "../model.ts";
import { obedient } from "../orchestrator.ts";
import { characterOf, stepOf } from "../squads.ts";
import { roleOf, usual } from "../swarm/index.ts";

export const SAMPLE = [
  "## What I found\n\nThe greeting lives in `src/greet.js`. It says **hello**, and nothing else:\n\n",
  '```js\nexport function greet(name) {\n  // Ada is greeted, nobody else\n  return "Hello, " + name;\n}\n```\n\n',
  "| file | lines |\n| --- | --- |\n| src/greet.js | 3 |\n\nSee [the guide](https://example.org/guide).",
];

/** What a person says to have everything rebuilt; `webModel` then wants to run a command. */
export const AFRESH = "Build everything again from the start, please.";

/** A table whose pieces end in the middle of a row. */
const SLOW_TABLE = [
  "Here it is:\n\n| na",
  "me | lines |\n",
  "| --",
  "- | --- |\n",
  "| a.ts",
  " | 1 |\n| b.t",
  "s | 2 |\n",
  "| c.ts | 3",
  " |\n\nThat is ",
  "all.",
];

/** A model for the web page: it makes the calls it is told to, says a lot slowly, and plays squads and pipelines. */
export const webModel: Model = (request, index) => {
  if (characterOf(request) !== undefined) return agentAct(stepOf(request));
  if (/^(?:pm|designer|engineer|tester|.*reviewer)$/.test(roleOf(request)))
    return usual({ role: roleOf(request), prompt: lastUserText(request), afterTool: isAfterTool(request), before: 0, request });
  const said = request.messages.filter(({ role }) => role === "user").map(textOf);
  const last = said.at(-1) ?? "";
  const steered = said.find((text) => text.includes("also say"));
  if (steered && last.includes("also say")) return { say: `You also wanted: ${/also say (\w+)/.exec(steered)?.[1]}` };
  if (last.includes("table slowly")) return { say: SLOW_TABLE, gapMs: 60 };
  const slow = /slowly (\d+)/.exec(last);
  if (slow) return { say: Array.from({ length: Number(slow[1]) }, (_, at) => `word${at + 1} `), gapMs: 60 };
  if (last.endsWith(AFRESH) && !isAfterTool(request))
    return {
      say: "I remove what was built before.",
      call: [{ tool: "shell", args: { command: "rm -rf build && npm run build" } }],
    };
  if (/call \S+ [{[]/.test(last) || isAfterTool(request)) return obedient(request, index);
  if (last.includes("repeat:")) return { say: last.slice(last.indexOf("repeat:") + "repeat:".length).trim() };
  return { say: SAMPLE, gapMs: 5 };
};

function agentAct(step: number): Act {
  if (step === 0)
    return {
      call: [
        {
          tool: "file_ops",
          args: {
            operation: "write",
            path: "src/farewell.js",
            content: 'export const farewell = (name) => "Goodbye, " + name;\n',
          },
        },
      ],
    };
  if (step === 1) return { call: [{ tool: "shell", args: { command: "node --test" } }] };
  return { say: "The farewell is there, and the tests pass." };
}
