import type { Looks } from "../text/style.ts";

/** What this terminal can display, judging by its environment variables. */
export function looksOf(env: NodeJS.ProcessEnv): Looks & { reflows: boolean } {
  return {
    colour: !env.NO_COLOR,
    links: hasLinks(env),
    // The Linux console and xterm cut rows that no longer fit; all other terminals rewrap them.
    reflows: env.TERM !== "linux" && !(env.XTERM_VERSION && !env.TMUX),
  };
}

function hasLinks({
  TERM = "",
  TERM_PROGRAM = "",
  VTE_VERSION,
  WT_SESSION,
  KITTY_WINDOW_ID,
  KONSOLE_VERSION,
}: NodeJS.ProcessEnv) {
  return (
    /kitty|alacritty|foot|ghostty|wezterm/i.test(TERM) ||
    /iTerm|WezTerm|vscode|ghostty|Hyper|tmux/i.test(TERM_PROGRAM) ||
    Number(VTE_VERSION ?? 0) >= 5_000 ||
    [WT_SESSION, KITTY_WINDOW_ID, KONSOLE_VERSION].some(Boolean)
  );
}
