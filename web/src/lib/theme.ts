export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const KEY = "io.theme";

export function savedTheme(storage: Storage = localStorage): Theme {
  return THEMES.find((theme) => theme === storage.getItem(KEY)) ?? "system";
}

export function applyTheme(theme: Theme, storage: Storage = localStorage): void {
  storage.setItem(KEY, theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
