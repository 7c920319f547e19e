import type { Provider } from "./core.ts";

/** A client that returns the answer unchanged, so that tests see exactly what was sent. */
export async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** The error in an answer, whatever its format. */
export function errorOf({ text }: { text: string }): Record<string, unknown> {
  return (JSON.parse(text) as { error: Record<string, unknown> }).error;
}

/** The data of a stream's events, in order, parsed unless it is `[DONE]`. */
export function eventsOf(text: string): unknown[] {
  return text
    .split(/\r?\n\r?\n/)
    .flatMap((event) => event.split(/\r?\n/).filter((line) => line.startsWith("data: ")))
    .map((line) => line.slice(6))
    .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
}

export const bearer = (key = "sk-proj-right-key-for-the-tests-0000") => ({ authorization: `Bearer ${key}` });

/** Requests completions with the right key. */
export function chat(server: Provider, body: Record<string, unknown>) {
  return post(`${server.url}/chat/completions`, { messages: [{ role: "user", content: "Hello" }], ...body }, bearer());
}
