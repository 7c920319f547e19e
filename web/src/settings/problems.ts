const startsAt = (line: string, path: string) => line.startsWith(`${path}:`) || line.startsWith(`${path}.`);

/** The daemon's errors about the parts of a setting, by name; those about none of them are under "". */
export function problemsOf(problem: string, path: string, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  // A name may start with another one and a dot.
  const longestFirst = names.filter((name) => name !== "").sort((a, b) => b.length - a.length);
  for (const line of problem.split("\n").filter((each) => each !== "")) {
    const name = longestFirst.find((each) => startsAt(line, `${path}.${each}`)) ?? "";
    found[name] = found[name] === undefined ? line : `${found[name]}\n${line}`;
  }
  return found;
}

/** Whether the field at this path was refused. If the errors name no field of the setting, every field counts as refused. */
export function isRefused(problem: string, name: string, path: string): boolean {
  const lines = problem.split("\n").filter((line) => line !== "");
  return lines.length > 0 && (lines.some((line) => startsAt(line, path)) || !lines.some((line) => line.startsWith(`${name}.`)));
}
