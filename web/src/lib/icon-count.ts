const PLAIN = "/icon.svg";
const MARK =
  '<rect width="32" height="32" rx="7" fill="#1b1830"/><path fill="#ff7ab8" d="M7 8h4v16H7z"/><circle cx="20" cy="16" r="6" fill="none" stroke="#58d0dc" stroke-width="4"/>';

/** Shows how much waits for the user on the window's icon and on that of an installed page. */
export function showIconCount(count: number): void {
  const words = count > 9 ? "9+" : String(count);
  const badge = `<circle cx="22" cy="10" r="10" fill="#ffbf69"/><text x="22" y="15" font-family="sans-serif" font-size="${count > 9 ? 11 : 14}" font-weight="700" text-anchor="middle" fill="#1b1830">${words}</text>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${MARK}${badge}</svg>`;
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (link) link.href = count > 0 ? `data:image/svg+xml,${encodeURIComponent(svg)}` : PLAIN;
  // Not all browsers support this, and it may be refused if the page is not installed.
  navigator.setAppBadge?.(count).catch(() => undefined);
}
