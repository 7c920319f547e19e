/** The longest wait for a tab that does not paint, such as a hidden one. */
const AT_MOST_MS = 300;

/** Resolves after the page's current content has been painted. */
export function afterPaint(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, AT_MOST_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}
