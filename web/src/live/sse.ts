/** One event of a stream. `name` is empty for a block that only reports the position in the stream. */
export interface Sent {
  id: number | undefined;
  name: string;
  data: string;
}

/** Parses server-sent events from chunks that may end anywhere. */
export function createReader(): (piece: string) => Sent[] {
  let rest = "";
  return (piece) => {
    const blocks = (rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => read(block) ?? []);
  };
}

function read(block: string): Sent | undefined {
  const sent: Sent = { id: undefined, name: "", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field = "", value = ""] = /^([a-z]+): ?(.*)$/s.exec(line) ?? [];
    if (field === "id") sent.id = Number(value);
    if (field === "event") sent.name = value;
    if (field === "data") data.push(value);
  }
  sent.data = data.join("\n");
  return sent.id === undefined && data.length === 0 ? undefined : sent;
}
