import type { ProjectCommand } from "../../protocol/analysis.ts";
import { type CommandFinder, certainIf, type ProjectView, showsTests, when } from "./scope.ts";

/** CTest sees all tests only from the top folder. */
export const ofCmake: CommandFinder = ({ manifest, view, text }) => {
  const folder = view.named(/^build\//).length > 0 ? "cmake-build" : "build";
  const build = `cmake -B ${folder} && cmake --build ${folder}`;
  const top = withoutComments(manifest.folder === "." ? (view.read("CMakeLists.txt") ?? "") : text("CMakeLists.txt"));
  return [
    ...when(isTestedByCtest(top), "test", `${build} && ctest --test-dir ${folder} --output-on-failure --no-tests=error`),
    ["build", build],
  ];
};

const isTestedByCtest = (text: string) => /\b(?:enable_testing\s*\(|include\s*\(\s*CTest\b)/i.test(text);
const withoutComments = (text: string) => text.replace(/#[^\n]*/g, "");

/** Words in CMake files that reveal a test library. */
const LIBRARIES: readonly [label: string, pattern: RegExp][] = [
  ["GoogleTest", /\b(?:GTest|gtest|googletest|gtest_discover_tests|gmock)\b/],
  ["Catch2", /\b(?:Catch2|catch_discover_tests)\b/],
  ["doctest", /\b(?:doctest|doctest_discover_tests)\b/],
  ["Boost.Test", /\bunit_test_framework\b/],
];

/** The C and C++ test tools, according to the CMake files. */
export function cmakeTestTools(view: ProjectView): string[] {
  if (!view.manifests.some(({ kind }) => kind === "cmake")) return [];
  const texts = view
    .named(/(?:^|\/)CMakeLists\.txt$/)
    .slice(0, 20)
    .map((file) => withoutComments(view.read(file) ?? ""));
  return [
    ...(texts.some(isTestedByCtest) ? ["CTest"] : []),
    ...LIBRARIES.filter(([, pattern]) => texts.some((text) => pattern.test(text))).map(([label]) => label),
  ];
}

/** A Package.swift without other Swift code only offers code in other languages to Swift users. */
export const ofSwift: CommandFinder = ({ view, text }) => {
  if (view.named(/\.swift$/).every((file) => file.endsWith("Package.swift"))) return [];
  const tested = /\.testTarget\s*\(/.test(text("Package.swift"));
  return [...when(tested, "test", "swift test"), ["build", "swift build"]];
};

const TEST_RULE = /^[ \t]*(?:\w+_test|test_suite)\s*\(/m;

export const ofBazel: CommandFinder = ({ view }) => {
  const builds = view.named(/(?:^|\/)BUILD(?:\.bazel)?$/).slice(0, 500);
  return [
    ...when(
      builds.some((file) => TEST_RULE.test(view.read(file) ?? "")),
      "test",
      "bazel test //...",
    ),
    ...when(builds.length > 0, "build", "bazel build //..."),
  ];
};

/** The steps that create an Autotools folder's Makefile; undefined if it exists or is made in another way. */
export function autotoolsSteps(view: ProjectView, folder: string): string | undefined {
  const has = (name: string) => view.has(folder === "." ? name : `${folder}/${name}`);
  if (["Makefile", "makefile", "GNUmakefile"].some(has) || !["configure.ac", "configure.in"].some(has)) return undefined;
  if (has("configure")) return "./configure";
  return has("autogen.sh") ? "./autogen.sh && ./configure" : "autoreconf -fi && ./configure";
}

export function ofAutotools(view: ProjectView): ProjectCommand[] {
  const steps = view.has("Makefile.am") ? autotoolsSteps(view, ".") : undefined;
  if (steps === undefined) return [];
  const at = { cwd: ".", from: "Makefile.am" };
  return [
    { purpose: "test", command: `${steps} && make check`, ...at },
    { purpose: "build", command: `${steps} && make`, ...at },
  ];
}

/** Options by which a project's CI shows that its tests need more than the default features. */
const FEATURES = ["--all-features", "--features full"];

export const ofCargo: CommandFinder = (scope) => {
  const { manifest, view, has } = scope;
  const all = manifest.workspace ? " --workspace" : "";
  const lines = view.ci.split("\n");
  const tested = lines.filter((line) => /\bcargo (?:\+\w+ )?(?:hack )?(?:test|nextest)\b/.test(line));
  const features = tested.flatMap((line) => FEATURES.find((flag) => line.includes(flag)) ?? [])[0];
  const test = `cargo test${all}${features ? ` ${features}` : ""}`;
  const clippy = view.named(/(?:^|\/)\.?clippy\.toml$/).length > 0 || /\bclippy\b/.test(view.ci);
  const format = has("rustfmt.toml") || has(".rustfmt.toml") || /\bcargo fmt\b/.test(view.ci);
  return [
    certainIf(tested.length > 0 || showsTests(scope, /\.rs$/), "test", test),
    ...when(clippy, "lint", `cargo clippy${all}`),
    ...when(format, "lint", `cargo fmt${manifest.workspace ? " --all" : ""} --check`),
    ["build", `cargo build${all}`],
  ];
};

export const ofGo: CommandFinder = (scope) => {
  const { view } = scope;
  const linter = view.named(/(?:^|\/)\.golangci\.(?:ya?ml|toml|json)$/).length > 0;
  return [
    certainIf(showsTests(scope, /_test\.go$/), "test", "go test ./..."),
    linter ? ["lint", "golangci-lint run"] : certainIf(/\bgo vet\b/.test(view.ci), "lint", "go vet ./..."),
    ["build", "go build ./..."],
  ];
};
