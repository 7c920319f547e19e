/** The sources whose replies are fetched over HTTP; other channels deliver their own. */
export const FETCHED_SOURCES: readonly string[] = ["tui", "web", "api", "mcp", "openai", "acp"];
