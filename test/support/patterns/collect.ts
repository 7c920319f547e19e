import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";
import { packageRoot } from "../../../src/lib/package-root.ts";

/** A pattern in the source code. */
export interface Pattern {
  file: string;
  line: number;
  source: string;
  flags: string;
}

/** A pattern that is composed at run time, with the code that does so. */
export interface Composed {
  file: string;
  line: number;
  text: string;
}

/** Every pattern in src: literals, and the arguments of `new RegExp` that are known from the file alone. */
export function collectPatterns(): { patterns: Pattern[]; composed: Composed[] } {
  const patterns: Pattern[] = [];
  const composed: Composed[] = [];
  for (const path of sources(join(packageRoot, "src"))) {
    const tree = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
    const file = relative(packageRoot, path);
    const known = constantsOf(tree);
    const visit = (node: ts.Node): void => {
      const line = tree.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      if (ts.isRegularExpressionLiteral(node)) patterns.push({ file, line, ...split(node.text) });
      const made = isRegExp(node) ? worth(node, known) : undefined;
      if (made instanceof RegExp) patterns.push({ file, line, source: made.source, flags: made.flags });
      else if (isRegExp(node)) composed.push({ file, line, text: node.getText() });
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  return { patterns, composed };
}

type Known = ReadonlyMap<string, ts.Expression>;
type Made = ts.NewExpression | ts.CallExpression;

function isRegExp(node: ts.Node): node is Made {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === "RegExp";
}

/** The constants at the top level of a file. */
function constantsOf(tree: ts.SourceFile): Known {
  const known = new Map<string, ts.Expression>();
  for (const statement of tree.statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, initializer } of statement.declarationList.declarations)
      if (ts.isIdentifier(name) && initializer) known.set(name.text, initializer);
  }
  return known;
}

/** The value of an expression, if the file alone determines it. */
function worth(node: ts.Expression, known: Known): string | RegExp | undefined {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (ts.isRegularExpressionLiteral(node)) {
    const { source, flags } = split(node.text);
    return new RegExp(source, flags);
  }
  if (ts.isTemplateExpression(node)) return joined(node, known, (part) => part.text);
  if (ts.isTaggedTemplateExpression(node) && node.tag.getText() === "String.raw") {
    if (ts.isNoSubstitutionTemplateLiteral(node.template)) return node.template.rawText ?? node.template.text;
    return joined(node.template, known, (part) => part.rawText ?? part.text);
  }
  if (ts.isIdentifier(node)) {
    const constant = known.get(node.text);
    return constant && worth(constant, known);
  }
  if (!isRegExp(node)) return undefined;
  const [first, second] = (node.arguments ?? []).map((each) => worth(each, known));
  if (first === undefined || second instanceof RegExp || (node.arguments?.[1] && second === undefined)) return undefined;
  return new RegExp(first, second);
}

function joined(
  template: ts.TemplateExpression,
  known: Known,
  textOf: (part: ts.TemplateHead | ts.TemplateMiddle | ts.TemplateTail) => string,
): string | undefined {
  let text = textOf(template.head);
  for (const { expression, literal } of template.templateSpans) {
    const value = worth(expression, known);
    if (typeof value !== "string") return undefined;
    text += value + textOf(literal);
  }
  return text;
}

function split(literal: string): { source: string; flags: string } {
  const end = literal.lastIndexOf("/");
  return { source: literal.slice(1, end), flags: literal.slice(end + 1) };
}

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return entry.name.endsWith(".ts") ? [path] : [];
  });
}
