import type { PlaceSpec } from "./job-messages.ts";

/** The arguments of tools that name a place; others, such as a file's text, are as the model wrote them. */
const NAMING = new Set(["path", "to", "command", "working_dir"]);
/** How a text begins that goes on with the name before it: that is then another one. */
const GOES_ON = /^(?:[\w-]|\.\w)/;

type Names = readonly (readonly [from: string, to: string])[];

/** The names of folders on the daemon's host, which the model knows, and of the ones that stand for them here. */
export function createPathNames(
  { cwd, projectPath, prefix }: Pick<PlaceSpec, "cwd" | "projectPath" | "prefix">,
  top: string,
  here: string,
) {
  const topThere = prefix === "" ? cwd : cwd.slice(0, -prefix.length - 1);
  const inward = longestFirst([
    [cwd, here],
    [topThere, top],
    [projectPath, here],
  ]);
  const outward = longestFirst([
    [here, cwd],
    [top, topThere],
  ]);
  return {
    /** As this host calls it. */
    args: (given: Record<string, unknown>): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries(given).map(([name, value]) => [
          name,
          typeof value === "string" && NAMING.has(name) ? renamed(value, inward) : value,
        ]),
      ),
    /** As the daemon and the model call it. */
    text: (said: string): string => renamed(said, outward),
  };
}
export type PathNames = ReturnType<typeof createPathNames>;

const longestFirst = (names: Names): Names => [...names].sort(([a], [b]) => b.length - a.length);

/** Puts each name in place of the other once: what was put there is not looked at again. */
function renamed(text: string, [first, ...others]: Names): string {
  if (!first) return text;
  const [from, to] = first;
  return text
    .split(from)
    .map((part, at) => {
      const between = renamed(part, others);
      if (at === 0) return between;
      return (GOES_ON.test(part) ? renamed(from, others) : to) + between;
    })
    .join("");
}
