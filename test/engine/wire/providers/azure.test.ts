import { expect, test } from "vitest";
import { startAzure } from "../../../support/providers/azure.ts";
import { errorOf, eventsOf, post } from "../../../support/providers/talk.ts";

const key = { "api-key": "0123456789abcdef0123456789abcdef" };
const messages = [{ role: "user", content: "Hello" }];
const classic = (origin: string, name: string) => `${origin}/openai/deployments/${name}/chat/completions`;

test("Azure takes the name of a deployment, in the body or in the path, with a key or a bearer", async () => {
  const server = await startAzure();
  const url = `${server.url}/chat/completions`;
  expect((await post(url, { model: "my-gpt-4o", messages }, key)).status).toBe(200);
  expect((await post(url, { model: "my-gpt-4o", messages }, { authorization: `Bearer ${key["api-key"]}` })).status).toBe(200);
  expect((await post(`${server.url}/responses`, { model: "my-gpt-4o", input: "Hello" }, key)).status).toBe(200);
  expect((await post(`${classic(server.origin, "my-gpt-4o")}?api-version=2024-10-21`, { messages }, key)).status).toBe(200);
  expect(server.asked.map(({ servedAs }) => servedAs)).toEqual(Array.from({ length: 4 }, () => "gpt-4o-2024-08-06"));
});

test("Azure refuses a base model, a wrong key, a path without a version, a version that is none and a prompt that it filters", async () => {
  const server = await startAzure({ filter: /poison/ });
  const url = `${server.url}/chat/completions`;
  const missing = await post(url, { model: "gpt-4o", messages }, key);
  expect(missing.status).toBe(404);
  expect(JSON.parse(missing.text)).toEqual({
    error: {
      code: "DeploymentNotFound",
      message:
        "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
    },
  });
  const denied = await post(url, { model: "my-gpt-4o", messages }, { "api-key": "wrong" });
  expect([denied.status, errorOf(denied).message]).toEqual([
    401,
    expect.stringMatching(/^Access denied due to invalid subscription key/),
  ]);
  expect(errorOf(await post(classic(server.origin, "my-gpt-4o"), { messages }, key)).message).toBe("Resource not found");
  expect(errorOf(await post(`${url}?api-version=2024-10-21`, { model: "my-gpt-4o", messages }, key)).message).toBe(
    "API version not supported",
  );
  expect(errorOf(await post(url, { model: "my-gpt-4o", reasoning_effort: "low", messages }, key)).message).toBe(
    "Unrecognized request argument supplied: reasoning_effort",
  );
  const filtered = await post(url, { model: "my-gpt-4o", messages: [{ role: "user", content: "poison" }] }, key);
  expect(errorOf(filtered)).toMatchObject({ code: "content_filter", innererror: { code: "ResponsibleAIPolicyViolation" } });
});

test("Azure's list shows models that nobody deployed, and no deployment", async () => {
  const server = await startAzure();
  const list = await (await fetch(`${server.url}/models`, { headers: key })).json();
  const ids = (list as { data: { id: string }[] }).data.map(({ id }) => id);
  expect(ids).toContain("gpt-4.1-2025-04-14");
  expect(ids).not.toContain("my-gpt-4o");
});

test("Azure streams a chunk without choices first, and a choice without a delta late", async () => {
  const server = await startAzure({ asyncFilter: true, script: () => ({ say: "Yes." }) });
  const { text } = await post(`${server.url}/chat/completions`, { model: "my-gpt-4o", stream: true, messages }, key);
  const events = eventsOf(text);
  expect(events[0]).toMatchObject({ choices: [], id: "", model: "", prompt_filter_results: [{ prompt_index: 0 }] });
  expect((events.at(-2) as { choices: object[] }).choices[0]).not.toHaveProperty("delta");
});
