/** How long a tab that draws nothing, as a hidden one does, is waited for. */
const AT_MOST_MS = 300;

/** Resolves when what stands in the page now has been drawn. */
export function afterPaint(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, AT_MOST_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}
