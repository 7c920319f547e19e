import type { ManifestFacts } from "./manifest.ts";

/** A gem's own Gemfile, which names its gemspec, is for developing it; so are most groups of any other Gemfile. */
export function readGemfile(text: string): ManifestFacts {
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  const isGem = /^[ \t]*gemspec\b/m.test(text);
  const blocks: boolean[] = [];
  for (const line of text.split("\n")) {
    const gem = /^[ \t]*gem\s*(?:\(\s*)?["']([\w-]+)["']/.exec(line)?.[1];
    const isAside = isGem || blocks.includes(true) || /\bgroups?:/.test(line);
    if (gem) found[isAside ? "development" : "dependencies"].add(gem);
    else if (/^[ \t]*end\b/.test(line)) blocks.pop();
    else if (/\bdo[ \t]*(?:\|[^|]*\|[ \t]*)?$/.test(line) || /^[ \t]*(?:if|unless|case|def)\b/.test(line))
      blocks.push(/^[ \t]*group\b/.test(line) && !/:(?:production|default|assets)\b/.test(line));
  }
  return { name: "", ...found };
}

export function readGemspec(text: string): ManifestFacts {
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  for (const [, how, gem] of text.matchAll(/\.add_(\w+_)?dependency\s*(?:\(\s*)?["']([\w-]+)["']/g))
    found[how === "development_" ? "development" : "dependencies"].add(gem!);
  return { name: /\.name\s*=\s*["']([^"']+)/.exec(text)?.[1] ?? "", ...found };
}
