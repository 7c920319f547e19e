/** The address of a squad in the API. */
export const squadRoute = (slug: string) => `/api/squads/${encodeURIComponent(slug)}`;
