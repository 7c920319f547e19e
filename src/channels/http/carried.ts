/** The sources whose replies are fetched over HTTP; those of others are on their way to somebody else. */
export const CARRIED: readonly string[] = ["tui", "web", "api", "mcp", "openai", "acp"];
