export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const YEAR_S = 365 * 24 * 60 * 60;

/** The saved theme, which the daemon puts into the page so that it is right from the start. */
export function currentTheme(): Theme {
  return THEMES.find((theme) => theme === document.documentElement.dataset.theme) ?? "system";
}

export function chooseTheme(theme: Theme): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the other way works only over HTTPS.
  document.cookie = `io_theme=${theme}; path=/; max-age=${YEAR_S}; samesite=strict`;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
