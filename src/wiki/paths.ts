import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { codeOf, UserError } from "../lib/errors.ts";
import { withoutEnd } from "../lib/trim.ts";

/** A page's public path (`pages/general/rust.md`) and its file. */
export interface PageFile {
  path: string;
  file: string;
}

const MAX_SEGMENT_BYTES = 255;
const MAX_PATH_BYTES = 1024;
// Control characters, line separators, lone surrogates, and invisible or bidirectional formatting characters; but not the
// joiners that Persian, Hindi and emoji need.
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cs}\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/u;
const ENCODED = /%(?:2e|2f|5c|00|25)/i;
const OTHER_EXTENSION = /\.[a-z][a-z0-9]{0,7}$/i;
// Names that only look like another file type: next.js, asp.net, socket.io.
const NAME_WITH_A_DOT = /\.(?:js|net|io|ai|dev|app|com|org)$/i;

/** The file of a page whose path is already validated; `pages` is a real path. */
export function fileIn(pages: string, path: string): string {
  return join(pages, path.slice("pages/".length));
}

/** Validates every page path: first its characters, then where it really leads. */
export function resolvePage(pages: string, given: string): PageFile {
  const root = realpathSync.native(pages);
  const wanted = normalizePath(given, (path) => isFile(join(root, ...path.split("/"))));
  const file = realFile(join(root, ...wanted.split("/")), given);
  const inside = relative(root, file).split(sep).join("/");
  if (inside === "" || inside.startsWith("../") || inside === ".." || join(root, inside) !== file) {
    throw invalidPath(given, "it leads out of the wiki through a link");
  }
  if (inside !== wanted && pathProblem(inside) !== undefined)
    throw invalidPath(given, "it leads to something that is not a page");
  return { path: `pages/${inside}`, file };
}

/** Why a path below `pages/` is invalid, or undefined if it is valid. */
export function pathProblem(path: string): string | undefined {
  if (UNSAFE_CHARACTERS.test(path)) return "it holds control or invisible characters";
  if (path.includes("\\")) return "it holds a backslash; folders are parted by /";
  if (ENCODED.test(path)) return "it holds an encoded dot, slash or percent sign; write the characters themselves";
  if (path.startsWith("/") || path.startsWith("~/") || /^[a-z]:/i.test(path)) return "it is absolute; give it relative to pages/";
  if (Buffer.byteLength(path) > MAX_PATH_BYTES - "pages/".length) return `it is longer than ${MAX_PATH_BYTES} bytes`;
  for (const segment of path.split("/")) {
    if (segment === "") return "it has an empty part between slashes";
    if (segment === "." || segment === "..") return `it holds "${segment}"`;
    if (segment.startsWith(".")) return `"${segment}" begins with a dot, and hidden names are not pages`;
    if (segment !== segment.trim()) return "a part of it begins or ends with a space";
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) return `a part of it is longer than ${MAX_SEGMENT_BYTES} bytes`;
  }
  return path.endsWith(".md") ? undefined : "pages end in .md";
}

/** Makes a safe file name for `sources/`: letters, digits, dots, hyphens and underscores. */
export function sourceName(given: string): string {
  const plain = given.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.-]+/, "");
  const name = withoutEnd(plain, "-").slice(0, 200);
  if (name === "")
    throw new UserError(`"${printable(given)}" leaves no name for a source. Use letters, digits, dots, hyphens, underscores.`);
  return name;
}

function normalizePath(given: string, isThere: (path: string) => boolean): string {
  const below = given.startsWith("pages/") ? given.slice("pages/".length) : given;
  if (below === "") throw invalidPath(given, "it names no page");
  const last = basename(below);
  const page = `${below}.md`;
  const isOther = () =>
    OTHER_EXTENSION.test(last) && !NAME_WITH_A_DOT.test(last) && !(pathProblem(page) === undefined && isThere(page));
  const named = below.endsWith(".md") || below.endsWith("/") || isOther() ? below : page;
  const why = pathProblem(named);
  if (why !== undefined) throw invalidPath(given, why);
  return named;
}

/** The real path of a file that may not exist yet: its deepest existing folder, plus the rest of the name. */
function realFile(file: string, given: string): string {
  const missing: string[] = [];
  for (let at = file; ; at = dirname(at)) {
    try {
      return join(realpathSync.native(at), ...missing);
    } catch (error) {
      const code = codeOf(error);
      if (code === "ENOTDIR") throw invalidPath(given, "a part of it is a page, not a folder");
      if (code === "ELOOP") throw invalidPath(given, "it leads through links that go in a circle");
      if (code !== "ENOENT") throw error;
    }
    if (isLink(at)) throw invalidPath(given, "it leads through a link to nowhere");
    missing.unshift(basename(at));
  }
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function invalidPath(given: string, why: string): UserError {
  return new UserError(
    `"${printable(given)}" is no page path: ${why}. Pages are named like "general/rust-patterns" or "projects/my-app.md".`,
  );
}

function printable(text: string): string {
  const clean = text.replace(new RegExp(UNSAFE_CHARACTERS, "gu"), "?");
  return clean.length > 80 ? `${clean.slice(0, 80)}…` : clean;
}
