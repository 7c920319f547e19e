import { posix } from "node:path";
import type { ProjectCommand } from "../../protocol/analysis.ts";
import { readShell } from "../../shell/read.ts";
import { isAssignment, type Part } from "../../shell/syntax.ts";
import { defaultGoal } from "../manifests/jvm.ts";
import { detectTests } from "../test-commands.ts";
import { autotoolsSteps } from "./native.ts";
import type { ProjectView, Purpose } from "./scope.ts";
import { recipeOf } from "./task-files.ts";

const words = (text: string) => new Set(text.split(" "));
const MAX_LENGTH = 300;

/** A command that a person wrote down for this project, and its purpose. */
export interface WrittenCommand extends ProjectCommand {
  /** The command without the variables that CI sets for it. */
  plain: string;
  /** Whether it builds an environment of its own from the network before it tests, as tox does. */
  isDriver: boolean;
}

/** Programs that leave the sandbox or the project, so their commands are never checks. */
const OUTSIDE = words("sudo doas su docker docker-compose podman nerdctl kubectl helm ssh scp curl wget gh aws gcloud az git");
/** Programs that work only after other steps of the same job. */
const NEEDS_STEPS = words("cmake ctest ninja meson msbuild xcodebuild");
const DRIVERS = words("tox nox pre-commit");
/** Parts of a script's or target's name that show that it is not a check. */
const NO_CHECK = /^(?:publish|release|deploy|upload|push|prepare|setup|install|download|generate)$/;
const OTHER_SYSTEM = /\.(?:bat|cmd|ps1|exe)$/i;
/** Programs that an install creates, so that no commit has them. */
const INSTALLED = /^(?:\.\/)?(?:vendor\/bin|node_modules\/\.bin|\.?venv\/bin)\/[\w.-]+$/;
/** Options that make a tool succeed whatever it finds. */
const NEVER_FAILS = /^(?:--exit-zero|--issues-exit-code=0)$/;

const LINTERS = words(
  "eslint oxlint xo standard stylelint pyright mypy flake8 pylint pyflakes golangci-lint staticcheck rubocop standardrb phpstan psalm phpcs shellcheck yamllint markdownlint ktlint swiftlint pre-commit",
);
/** Formatters and linters that change files unless told not to, and the words that tell them. */
const FORMATTERS = words("prettier black isort ruff biome rustfmt shfmt clang-format");
const ONLY_LOOKS = /^(?:--check|--check-only|--check-formatted|--dry-run|-c|-d|--diff|--list-different|-l|check|lint|ci)$/;
const FIXES = /^(?:--fix|--fix-only|--write|-w|-i|--apply|-A|--auto-correct|--autocorrect)$/;
const LINT_NAME = /^(?:lint|typecheck|type-check|check-types|types|tsc|vet|style|fmt-check|format-check|check|clippy)$/;
const GRADLE_LINT = /^(?:spotlessCheck|checkstyle\w*|pmd\w*|spotbugs\w*|detekt|ktlintCheck|lint)$/;
const BUILD_NAME = /^(?:build|compile|all|assemble)$/;

/** By program: the first words, and their purposes. */
const BY_FIRST: Readonly<Record<string, Readonly<Record<string, Purpose>>>> = {
  cargo: { clippy: "lint", doc: "lint", build: "build", check: "build" },
  go: { vet: "lint", build: "build" },
  dotnet: { build: "build" },
  swift: { build: "build" },
  mix: { credo: "lint", compile: "build" },
  dart: { analyze: "lint" },
  flutter: { analyze: "lint" },
  deno: { lint: "lint" },
  bazel: { build: "build" },
};

interface WrittenAt {
  cwd: string;
  from: string;
  /** The purpose that the step's name suggests, used for a script of the project that no rule knows. */
  called?: Purpose | undefined;
}

/** Reads one line as a check. It must be plain words joined by `&&`: no variable, pipe, redirect or placeholder. */
export function readWritten(line: string, view: ProjectView, at: WrittenAt): WrittenCommand | undefined {
  const text = withGoal(line.trim(), view, at.cwd);
  if (text === "" || text.length > MAX_LENGTH || /[\n\r<>*?~]|\$\{\{/.test(text)) return undefined;
  const parts = readShell(text);
  if (parts.length === 0 || parts.length > 5 || !parts.every(isPlain)) return undefined;
  const given = parts.map((part) => part.pipe[0]!.words.map((word) => word.text));
  const moved = given[0]![0] === "cd" ? given[0]![1] : undefined;
  const cwd = within(at.cwd, moved ?? ".");
  const rest = moved === undefined ? given : given.slice(1);
  if (cwd === undefined || !view.hasFolder(cwd) || rest.length === 0) return undefined;
  const purposes = rest.map((each) => purposeOf(each, view, cwd) ?? (isOwnScript(each, view, cwd) ? at.called : undefined));
  if (purposes.includes(undefined)) return undefined;
  const command = moved === undefined ? text : text.slice(text.indexOf("&&") + 2).trim();
  const purpose = (["test", "lint", "build"] as const).find((one) => purposes.includes(one))!;
  const plain = configured(local(command), view, cwd);
  return { purpose, command: plain, plain, cwd, from: at.from, isDriver: rest.some((each) => each.some(isDriver)) };
}

/** Adds the project's default goals to a Maven call that names none. */
function withGoal(line: string, view: ProjectView, cwd: string): string {
  const isBare = /^(?:\.\/)?mvnw?(?: -\S+)*$/.test(line);
  return isBare ? `${line} ${defaultGoal(view.read(posix.join(cwd, "pom.xml")) ?? "")}`.trim() : line;
}

/** The folder that `cd` leads to, if it is inside the project. */
export function within(cwd: string, folder: string): string | undefined {
  if (folder.startsWith("/") || folder.startsWith("-") || !/^[\w@./ -]+$/.test(folder)) return undefined;
  const to = posix.normalize(posix.join(cwd, folder)).replace(/\/$/, "");
  return to === ".." || to.startsWith("../") ? undefined : to;
}

function isPlain({ before, isTurned, inBackground, pipe }: Part, index: number): boolean {
  const [command] = pipe;
  if (pipe.length !== 1 || !command || isTurned || inBackground || (index > 0 && before !== "&&")) return false;
  if (command.group || command.defines || command.within.length > 0 || command.redirects.length > 0) return false;
  return command.words.length > 0 && command.words.every((word) => word.pieces.every(({ kind }) => kind === "text"));
}

function purposeOf(given: readonly string[], view: ProjectView, cwd: string): Purpose | undefined {
  const plain = given.slice(given.findIndex((word) => !isAssignment(word)));
  const named = plain.filter((word) => !word.startsWith("-"));
  if (!mayCheck(given, plain) || !isThere(plain, view, cwd) || uploads(plain, view, cwd)) return undefined;
  // A Make target that is a file rather than an action.
  if (plain[0] === "make" && named.slice(1).some((word) => word.includes("/") && !isAssignment(word))) return undefined;
  if (detectTests(plain.map(quoted).join(" ")).isTest || testsByDefault(plain, view, cwd)) return "test";
  // What a bare `make` does is known if the file has the usual target.
  const isMake = plain.length === 1 && plain[0] === "make";
  return isMake && /^all:/m.test(view.read(cwd === "." ? "Makefile" : `${cwd}/Makefile`) ?? "") ? "build" : otherPurpose(plain);
}

/** Whether nothing in the words shows that they leave the project, change files, need other steps or cannot fail. */
function mayCheck(given: readonly string[], plain: readonly string[]): boolean {
  if (given.every(isAssignment) || plain.some((word) => OUTSIDE.has(nameOf(word)) || OTHER_SYSTEM.test(word))) return false;
  if (plain.some((word) => FIXES.test(word) || NEVER_FAILS.test(word)) || NEEDS_STEPS.has(nameOf(plain[0]!))) return false;
  // A linter's arguments are files, whatever their names.
  const named = LINTERS.has(nameOf(plain[0]!)) ? [] : plain.filter((word) => !word.startsWith("-"));
  return !named.some((word) => word.split(/[:/_.-]/).some((part) => NO_CHECK.test(part)));
}

/** Whether a command calls a script of the top package file, or a Make or just target, that fixes files. */
export function fixesFiles(command: string, view: ProjectView): boolean {
  const [program = "", ...args] = command.split(" ");
  const name = args.find((word) => word !== "run" && word !== "run-script" && !word.startsWith("-"));
  if (name === undefined) return false;
  const root = view.manifests.find(({ kind, folder }) => kind === "npm" && folder === ".");
  const isManager = /^(?:npm|pnpm|yarn|bun)$/.test(program);
  const done = isManager
    ? [root?.scripts.get(name) ?? ""]
    : /^(?:make|just)$/.test(program)
      ? recipeOf(view, ".", program, name)
      : [];
  return done.some((line) =>
    line
      .trim()
      .split(/\s+/)
      .some((word) => FIXES.test(word)),
  );
}

/** Whether it only starts a file of the project. */
function isOwnScript(given: readonly string[], view: ProjectView, cwd: string): boolean {
  const plain = given.slice(given.findIndex((word) => !isAssignment(word)));
  if (!mayCheck(given, plain)) return false;
  const [program = "", first = ""] = plain;
  if (/^(?:bash|sh|python3?|node|ruby|php|perl)$/.test(program)) return view.has(posix.normalize(posix.join(cwd, first)));
  return program.includes("/") && !INSTALLED.test(program) && isThere(plain, view, cwd);
}

/** Puts the steps that create the Makefile before a Make call in an Autotools project. */
function configured(command: string, view: ProjectView, cwd: string): string {
  if (!/^(?:\w+=\S+ )*g?make(?: |$)/.test(command)) return command;
  const steps = autotoolsSteps(view, cwd);
  return steps === undefined ? command : `${steps} && ${command}`;
}

/**
 * Whether a command runs tests although its words do not name them: Gradle's `build`, Rake if that is its default, and a target
 * or script of another name.
 */
function testsByDefault(plain: readonly string[], view: ProjectView, cwd: string): boolean {
  const [program = "", ...args] = unwrapped(plain);
  const [first = "", second = ""] = args;
  if (/^(?:make|just)$/.test(program) && args.length === 1 && byName(first) === undefined)
    return recipeOf(view, cwd, program, first).some((line) => detectTests(line.trim().replace(/^[@+-]+/, "")).isTest);
  if (/^(?:npm|pnpm|yarn|bun)$/.test(program) && first === "run" && args.length === 2 && byName(second) === undefined) {
    const manifest = view.manifests.find(({ kind, folder }) => kind === "npm" && folder === cwd);
    return detectTests(manifest?.scripts.get(second) ?? "").isTest;
  }
  if (/^gradlew?$/.test(nameOf(program))) return args.includes("build") && !args.includes("-x");
  if (nameOf(program) !== "rake" || args.length > 0) return false;
  const rakefile = view.read(posix.join(cwd, "Rakefile")) ?? "";
  return rakefile
    .split("\n")
    .some((line) => /^task\b/.test(line.trim()) && line.includes("default") && /\b(?:test|spec)s?\b/.test(line));
}

/** Programs that send results to a service. */
const UPLOADS = /(?:^|[\s|;&/])(?:coveralls|codecov|codacy-coverage|cc-test-reporter)(?:$|[\s|;&])/;

/** Whether a command, or the script of a package that it calls, sends results elsewhere. */
function uploads(plain: readonly string[], view: ProjectView, cwd: string): boolean {
  const [program = "", first = "", second = ""] = plain.filter((word) => !word.startsWith("-"));
  const manifest = view.manifests.find(({ kind, folder }) => kind === "npm" && folder === cwd);
  const script = /^(?:npm|pnpm|yarn|bun)$/.test(program)
    ? manifest?.scripts.get(/^run(?:-script)?$/.test(first) ? second : first)
    : "";
  return UPLOADS.test(plain.join(" ")) || UPLOADS.test(script ?? "");
}

/** Whether the script, target or file that a command names is in the project. */
function isThere(plain: readonly string[], view: ProjectView, cwd: string): boolean {
  const [program = "", first = "", second = ""] = plain;
  if (program.startsWith("/")) return false;
  if (program.includes("/")) return INSTALLED.test(program) || isStartable(posix.normalize(posix.join(cwd, program)), view);
  if (/^(?:npm|pnpm|yarn|bun)$/.test(program)) {
    const manifest = view.manifests.find(({ kind, folder }) => kind === "npm" && folder === cwd);
    if (/^run(?:-script)?$/.test(first) && !second.startsWith("-")) return manifest?.scripts.has(second) ?? false;
    return first !== "test" || program === "bun" || (manifest?.scripts.has("test") ?? false);
  }
  return true;
}

/** Whether a shell can start a file of the project: documents often name others, such as test data. */
function isStartable(file: string, view: ProjectView): boolean {
  const isNamedSo = /(?:^|\/)[a-z][^/.]*$|\.(?:sh|bash)$/.test(file);
  return view.has(file) && (isNamedSo || (view.read(file) ?? "").startsWith("#!"));
}

function otherPurpose(plain: readonly string[]): Purpose | undefined {
  const names = unwrapped(plain);
  const [program = "", ...args] = names;
  const name = nameOf(program);
  if (LINTERS.has(name)) return "lint";
  if (FORMATTERS.has(name)) return args.some((word) => ONLY_LOOKS.test(word)) ? "lint" : undefined;
  if (name === "tsc" || name === "vue-tsc") return args.includes("--noEmit") ? "lint" : "build";
  const targets = args.filter((word) => !word.startsWith("-") && !isAssignment(word));
  const [first = ""] = targets;
  if ((name === "cargo" && first === "fmt") || (name === "mix" && first === "format"))
    return args.some((word) => ONLY_LOOKS.test(word)) ? "lint" : undefined;
  const known = Object.hasOwn(BY_FIRST, name) ? BY_FIRST[name] : undefined;
  if (known) return Object.hasOwn(known, first) ? known[first] : undefined;
  if (/^(?:npm|pnpm|yarn|bun)$/.test(name)) return byName(first === "run" || first === "run-script" ? targets[1] : first);
  if (/^(?:make|gmake|just|task)$/.test(name)) return byName(first);
  if (/^gradlew?$/.test(name)) {
    if (targets.every((task) => GRADLE_LINT.test(task)) && targets.length > 0) return "lint";
    return targets.some((task) => BUILD_NAME.test(task)) ? "build" : undefined;
  }
  if (/^mvnw?$/.test(name)) return targets.some((one) => /^(?:package|compile)$/.test(one)) ? "build" : undefined;
  return program.includes("/") ? byName(name.replace(/\.(?:sh|bash|py|js|rb)$/, "")) : undefined;
}

/** The purpose of a script or target, by the first part of its name. */
function byName(name = ""): Purpose | undefined {
  if (LINT_NAME.test(name) || /^(?:lint|format)[:_-]/.test(name)) return /fix|write/.test(name) ? undefined : "lint";
  return BUILD_NAME.test(name) ? "build" : undefined;
}

/** Removes what only launches the program: `npx`, `uv run`, `python -m` and the like. */
function unwrapped(plain: readonly string[]): readonly string[] {
  const [first = "", second = ""] = plain;
  const after = (index: number) => {
    const at = plain.findIndex((word, position) => position >= index && !word.startsWith("-"));
    return at < 0 ? [] : plain.slice(at);
  };
  if (/^(?:npx|bunx|pnpx|uvx)$/.test(first)) return after(1);
  if (/^(?:uv|poetry|pdm|pipenv|hatch)$/.test(first) && second === "run") return unwrapped(after(2));
  if (/^(?:bundle|pnpm|yarn|npm)$/.test(first) && second === "exec") return after(2);
  if (/^python[\d.]*$/.test(first) && second === "-m") return plain.slice(2);
  return plain;
}

const isDriver = (word: string) => DRIVERS.has(nameOf(word));
const nameOf = (program: string) => program.slice(program.lastIndexOf("/") + 1);
const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "")}'`);
/** CI has its own `python`, most machines have `python3`; and `--scan` would upload a report of the build. */
const local = (command: string) => command.replace(/^python (?=\S)/, "python3 ").replaceAll(/ --scan(?= |$)/g, "");
