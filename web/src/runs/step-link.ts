/** Where a step of a run can be linked to. */
export const stepLink = (run: string, key: string): string =>
  `/runs/${run}/steps/${key.split("/").map(encodeURIComponent).join("/")}`;
