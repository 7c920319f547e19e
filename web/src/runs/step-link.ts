/** The address of a run's step. */
export const stepLink = (run: string, key: string): string =>
  `/runs/${run}/steps/${key.split("/").map(encodeURIComponent).join("/")}`;
