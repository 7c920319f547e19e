/** Texts of about `size` characters each that make a YAML parser run for seconds or crash. */
export function yamlBombs(size: number): Record<string, string> {
  const many = (line: (index: number) => string) => {
    let text = "";
    for (let index = 0; text.length < size; index += 1) text += line(index);
    return text;
  };
  const half = Math.floor(size / 2);
  return {
    "lists in lists": `${"[".repeat(half)}${"]".repeat(half)}`,
    "lists that nobody closes": "[".repeat(size),
    "lists whose ends are quoted": '["]",'.repeat(Math.floor(size / 5)),
    "maps in maps": `${"{a: ".repeat(Math.floor(size / 5))}x${"}".repeat(Math.floor(size / 5))}`,
    "lists on one line": `${"- ".repeat(half)}x`,
    "keys that are keys": `${"? ".repeat(half)}x`,
    "keys that are keys, line by line": many((index) => `${" ".repeat(index)}?\n`),
    "deeper and deeper": many((index) => `${" ".repeat(index)}a:\n`),
    "very many keys": many((index) => `k${index}: 1\n`),
    "very many keys on a line": `{${many((index) => `k${index}: 1,`)}}`,
    "the billion laughs": `a0: &a0 [x,x,x,x,x,x,x,x,x]\n${many((index) => `a${index + 1}: &a${index + 1} [${`*a${index},`.repeat(9)}]\n`)}`,
    "very many aliases": `- &a x\n${"- *a\n".repeat(Math.floor(size / 5))}`,
    "nothing but errors": "]\n".repeat(half),
    "nothing but quotes": '"'.repeat(size),
    "nothing but tags": "!a ".repeat(Math.floor(size / 3)),
  };
}
