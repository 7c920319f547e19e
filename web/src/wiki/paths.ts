/** A page's path as people say it: without the common folder and the extension. */
export const shortPath = (path: string): string => path.replace(/^pages\//, "").replace(/\.md$/, "");

export const pageAddress = (path: string): string =>
  `/api/wiki/pages/${shortPath(path).split("/").map(encodeURIComponent).join("/")}`;
export const historyAddress = (path: string): string =>
  `/api/wiki/history/${shortPath(path).split("/").map(encodeURIComponent).join("/")}`;
export const pageLink = (path: string): string => `/wiki/${shortPath(path).split("/").map(encodeURIComponent).join("/")}`;
