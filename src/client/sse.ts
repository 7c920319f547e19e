export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Parses server-sent events, ignoring comments. `onId` gets every id, even without an event. */
export async function* readEvents(body: AsyncIterable<Uint8Array>, onId?: (id: string) => void): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const value = (name: string) =>
        block
          .split("\n")
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ""))
          .join("\n");
      const id = value("id");
      const data = value("data");
      if (id) onId?.(id);
      if (data) yield { id, event: value("event"), data };
    }
  }
}
