import type { PlaceSpec } from "./job-messages.ts";

/** The tool arguments that contain paths; others, such as a file's text, stay as the model wrote them. */
const NAMING = new Set(["path", "to", "command", "working_dir"]);
/** Text that continues the name before it, which makes it another name. */
const GOES_ON = /^(?:[\w-]|\.\w)/;

type Names = readonly (readonly [from: string, to: string])[];

/** Translates between folder names on the daemon's host, which the model knows, and those on this host. */
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
    /** Translates to this host's names. */
    args: (given: Record<string, unknown>): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries(given).map(([name, value]) => [
          name,
          typeof value === "string" && NAMING.has(name) ? renamed(value, inward) : value,
        ]),
      ),
    /** Translates to the names that the daemon and the model know. */
    text: (said: string): string => renamed(said, outward),
  };
}
export type PathNames = ReturnType<typeof createPathNames>;

const longestFirst = (names: Names): Names => [...names].sort(([a], [b]) => b.length - a.length);

/** Replaces each name once: replacements are not searched again. */
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
