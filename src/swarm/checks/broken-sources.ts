import { basename, dirname, extname, join } from "node:path";
import { createBreath } from "../../lib/breath.ts";
import { withFolder } from "../../lib/pinned/folder.ts";
import { readPlain } from "../../lib/pinned/read.ts";
import { replaceFile } from "../../lib/pinned/write.ts";

const SAID = "broken for a trial, to see whether the checks notice";
const LARGEST = 5_000_000;
const MOST = 20_000;

const atTheTop = (line: string) => (text: string) =>
  text.startsWith("#!") ? text.replace(/\n|$/, `\n${line}\n`) : `${line}\n${text}`;
const thrown = atTheTop(`throw new Error("${SAID}");`);
const refused = atTheTop(`#error "${SAID}"`);
/** No compiled language accepts this at the start of a file. */
const nonsense = atTheTop(`)]} ${SAID}`);

/**
 * How to break a file, by its extension: running it must fail, while merely parsing it should not, where the language allows
 * that. A linter that notices would prove nothing about the tests.
 */
const BREAKS: Readonly<Record<string, (text: string) => string>> = {
  ...all("js mjs cjs jsx ts mts cts tsx", thrown),
  ...all("py", atTheTop(`raise ImportError("${SAID}")`)),
  ...all("rb", atTheTop(`raise LoadError, "${SAID}"`)),
  ...all("php", (text) => text.replace("<?php", `<?php throw new \\Error("${SAID}");`)),
  ...all("pl pm", atTheTop(`die "${SAID}";`)),
  ...all("lua", atTheTop(`error("${SAID}")`)),
  // The formatter asks for an empty line before a module.
  ...all("ex", atTheTop(`raise "${SAID}"\n`)),
  ...all("rs", atTheTop(`compile_error!("${SAID}");`)),
  ...all("c h cc cpp cxx hh hpp hxx m mm", refused),
  ...all("go java kt scala cs fs swift dart zig hs ml erl clj", nonsense),
};

function all(extensions: string, how: (text: string) => string): Record<string, (text: string) => string> {
  return Object.fromEntries(extensions.split(" ").map((extension) => [`.${extension}`, how]));
}

const TEST_FOLDER = /(?:^|\/)(?:tests?|__tests__|__mocks__|specs?|testing|testdata|test-d|fixtures|e2e)\//i;
const TEST_NAME = /^tests?\.|^test_|_tests?\.|[.-](?:test|spec)\.|_spec\.|[a-z0-9](?:Tests?|Spec|IT)\.\w+$|^conftest\.py$/;
/** Code that runs the checks, is third-party, or is generated. */
const TOOL_FOLDER =
  /(?:^|\/)(?:\.[^/]+|scripts?|tools?|hack|ci|docs?|examples?|samples?|bench(?:marks?)?|vendor|third_party|node_modules|dist|build|target|migrations)\//i;
const TOOL_NAME =
  /^\.|\.d\.[mc]?ts$|[.-](?:config|conf|setup)\.\w+$|^(?:setup|noxfile|tasks|fabfile|manage|build|gulpfile|gruntfile|webpack|karma|jest|vitest)\.\w+$/i;

/** The tracked files that checks can only have imported, without those that a command names itself. */
export function importable(files: readonly string[], commands: readonly string[]): string[] {
  const words = new Set(commands.flatMap((command) => command.split(/[\s"'=;&|()]+/)).map((word) => word.replace(/^\.\//, "")));
  return files
    .filter((file) => {
      const name = basename(file);
      if (BREAKS[extname(name).toLowerCase()] === undefined || words.has(file)) return false;
      return !TEST_FOLDER.test(file) && !TEST_NAME.test(name) && !TOOL_FOLDER.test(file) && !TOOL_NAME.test(name);
    })
    .slice(0, MOST);
}

/** Breaks files below a folder, and returns how many. */
export async function breakFiles(folder: string, files: readonly string[], signal: AbortSignal): Promise<number> {
  const breathe = createBreath(signal);
  let count = 0;
  for (const file of files) {
    const path = join(folder, file);
    const how = BREAKS[extname(path).toLowerCase()];
    if (how && broke(path, how)) count += 1;
    await breathe();
  }
  return count;
}

function broke(path: string, how: (text: string) => string): boolean {
  return withFolder(dirname(path), (folder) => {
    const read = readPlain(folder, basename(path), LARGEST);
    if ("absent" in read) return false;
    const text = read.bytes.toString("utf8");
    const broken = how(text);
    if (broken === text) return false;
    replaceFile(folder, basename(path), broken, { like: read.stats, durable: false });
    return true;
  });
}
