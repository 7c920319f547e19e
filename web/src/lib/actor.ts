/** Whoever acts, as one would say it: `squad:greeter/Hannibal` is Hannibal of greeter. */
export const actorName = (actor: string): string =>
  actor === "orchestrator" ? "IO" : actor.replace(/^(?:squad|swarm):/, "").replace(/^([^/:]+)[/:](.*)$/, "$2 of $1");

/** The name that a face is drawn from, so that somebody looks the same everywhere. */
export const faceName = (actor: string): string => actor.replace(/^.*[/:]/, "");
