/** The API path of a squad. */
export const squadRoute = (slug: string) => `/api/squads/${encodeURIComponent(slug)}`;
