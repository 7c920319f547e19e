const WORDS: Record<string, string> = {
  ...{ models: "model", mcpServers: "MCP server", headers: "header", env: "variable", pools: "pool" },
};

/** The word for one item, by the key of the whole setting. */
export const wordFor = (key: string): string => WORDS[key] ?? "row";
