/** CI configuration. */
export const CI =
  /(?:^|\/)(?:\.github\/(?:workflows|actions)\/|\.(?:gitea|forgejo)\/workflows\/|\.(?:circleci|ci|buildkite|semaphore|builds|azure-pipelines|teamcity|tekton|drone|gitlab\/ci|woodpecker|husky)\/|\.gitlab-ci[\w.-]{0,100}\.ya?ml$|\.(?:drone|travis|cirrus|zuul|woodpecker|pre-commit-config|appveyor)\.(?:ya?ml|star)$|(?:appveyor|cloudbuild|wercker|buildspec|codemagic|bitrise|lefthook|bitbucket-pipelines|zuul)\.ya?ml$|azure-pipelines[\w.-]{0,100}\.ya?ml$|action\.ya?ml$|Jenkinsfile(?:\.\w{1,20})?$)/i;
/** Files that a test runner finds by their name. */
export const NAMED_AS_TEST =
  /(?:^|\/)(?:test_[^/]{1,200}|conftest)\.py$|(?:^|\/)(?:tests?|specs?)\.[a-z]{1,5}$|[._-](?:test|spec|tests|e2e|cy)\.(?!go$|py$)[a-z]{1,5}$|_test\.(?:go|py|rb|exs|dart|cc|cpp|c|lua)$|_spec\.(?:rb|lua)$|(?:Test|Tests|Spec|Suite|IT)\.(?:java|kt|kts|cs|fs|scala|groovy|swift|php|hs)$|\.(?:bats|t|feature)$/;
export const TEST_FOLDER = /(?:^|[/._-])(?:tests?|specs?|__tests__|testing|testdata|e2e)\//i;
/** Folder names as in Java, Swift and C#. */
export const TEST_FOLDER_IN_WORDS = /[a-z]Tests?\//;
/** Folders in which every file belongs to tests; folders that may also contain specifications are not listed. */
export const DATA_FOLDER = /(?:^|[/._-])(?:tests?|__tests__|testing|testdata|e2e|fixtures)\//i;
export const PROSE = /\.(?:md|mdx|rst|adoc)$|(?:^|\/)\.git(?:ignore|attributes|keep)$/i;
export const CODE =
  /\.(?:[cm]?[jt]sx?|vue|svelte|py|go|rs|java|kts?|rb|php|cs|swift|dart|exs?|fs|hs|lua|clj|zig|bats|t|feature|r|R|scala|groovy|c|cc|cpp|sh|bash|bats)$/;

/** Test runner configuration. */
export const RUNNER =
  /(?:^|\/)(?:(?:vitest|jest|karma|playwright|cypress|ava|wdio|web-test-runner)\.(?:config|conf|workspace)\.[cm]?[jt]sx?|\.mocharc(?:\.\w{1,5})?|jest\.config\.json|pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|phpunit(?:\.dist)?\.xml(?:\.dist)?|\.rspec|\.nextest\.toml|nextest\.toml|dart_test\.yaml|bunfig\.toml|(?:jest|vitest)\.setup\.[cm]?[jt]sx?|CTestTestfile\.cmake|\.nycrc(?:\.\w{1,5})?|nyc\.config\.[cm]?js|\.c8rc(?:\.\w{1,5})?|\.coveragerc|\.?codecov\.ya?ml|\.simplecov)$/i;
/** Files that define named commands such as "test". */
export const SCRIPT_FILES =
  /(?:^|\/)(?:package\.json|deno\.jsonc?|composer\.json|GNUmakefile|[Mm]akefile|[Jj]ustfile|\.justfile|[Tt]askfile\.ya?ml|mise\.toml|Rakefile|pyproject\.toml|setup\.cfg|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|CMakeLists\.txt|meson\.build|BUILD(?:\.bazel)?|build\.sbt|build\.zig|mix\.exs|Package\.swift|project\.json|Earthfile|swarm\.config\.yaml|[\w.-]{1,200}\.(?:cs|fs)proj|vite\.config\.[cm]?[jt]s)$|\.(?:sh|bash)$/;
/** A line of those files that names or runs tests. */
export const RUNS_TESTS =
  /(?:^\s{0,200}|[{,]\s{0,20})["']?(?:pre|post)?(?:tests?|checks?|verify|lint|ci)(?:[:_.-][\w:.-]{1,40})?["']?\s{0,5}[:=(]|\b(?:pytest|unittest|vitest|jest|mocha|jasmine|ava|rspec|phpunit|ctest|add_test|nextest|surefire|failsafe|testTarget|\w{1,20}_test)\b|\b(?:npm|pnpm|yarn|bun|go|cargo|deno|mix|dotnet|swift|node)\s{1,5}(?:run\s{1,5})?(?:--)?test\b|\btest\/|_test\./;
/** A command that does nothing. */
export const NO_OP =
  /^\s{0,200}(?:RUN\s{1,5}|run:\s{0,5}|-\s{1,5})?[@-]?\s{0,5}(?:true|:|exit\s{1,5}0|(?:echo|printf)\b[^|&;]{0,500})\s{0,5}$/;
/** A setting that can exclude tests. */
export const SELECTS_TESTS =
  /\b(?:addopts|testpaths|python_files|norecursedirs|collect_ignore|skipTests|maven\.test\.skip|testFailureIgnore|ignoreFailures|passWithNoTests|testPathIgnorePatterns|testMatch|testRegex|testNamePattern|roots|rootDir|autotests|testOptions|exclude_tags|coverageThreshold|fail_under|check-coverage|thresholds?)\b|^\s{0,200}(?:harness|test|enabled)\s{0,5}=\s{0,5}false|\b(?:Compile|Content)\s{1,5}Remove=|\bTest\s{0,5}\/\s{0,5}(?:test|skip|unmanaged)|^\s{0,200}["']?(?:branches|functions|lines|statements|perFile)["']?\s{0,5}:\s{0,5}\d/;
/** The settings that exclude tests in files shared with other tools. */
export const EXCLUDES = /\b(?:excludes?|include)\b/;
export const SHARED_SETTINGS = /(?:^|\/)(?:deno\.jsonc?|build\.sbt|vite\.config\.[cm]?[jt]s|pom\.xml|build\.gradle(?:\.kts)?)$/;
/** Recorded results that tests compare with. */
export const SNAPSHOT =
  /(?:^|\/)(?:__snapshots__|__image_snapshots__|[\w.-]{1,200}-snapshots|cassettes)\/|\.(?:snap|golden|ambr)$|\.approved\.\w{1,10}$/;
/** Languages that allow tests in source files. */
export const INLINE_TESTS = /\.(?:rs|zig|py|[cm]?[jt]sx?)$/;
/** An assertion in a doc comment or in source code. */
export const INLINE_ASSERTION = /^\s{0,200}>>>\s|\bexpect\s{0,5}\(.{0,500}\)\.(?:not\.)?to[A-Z]/;

/** The start of a test, capturing its name if it has one. */
export const DECLARED = [
  /^\s{0,200}(?:it|test|specify|Deno\.test)(?:\.\w{1,20}){0,3}\s{0,5}\(\s{0,5}["'`]([^"'`]{1,300})["'`]/,
  /^\s{0,200}(?:async\s{1,5})?def\s{1,5}(test\w{0,200})\s{0,5}\(/,
  /^class\s{1,5}(Test\w{1,200})\s{0,5}[(:]/,
  /^\s{0,200}func\s{1,5}(Test\w{1,200}|Benchmark\w{1,200}|Fuzz\w{1,200})\s{0,5}\(/,
  /^\s{0,200}(?:public\s{1,5})?function\s{1,5}(test\w{1,200})\s{0,5}\(/,
  /^\s{0,200}(?:it|test|specify|test_that|@test)\s{0,5}[( ]\s{0,5}["']([^"']{1,300})["']/,
  /^\s{0,200}def\s{1,5}(test_\w{1,200})/,
  /^\s{0,200}func\s{1,5}(test\w{1,200}|Example\w{0,200})\s{0,5}\(/,
  /^(?:TEST|TEST_F|TEST_P|TEST_CASE|SCENARIO)\s{0,5}\(([^)]{1,300})\)/,
  /^\s{0,200}(?:@(?:Test|ParameterizedTest)\b|#\[(?:tokio::)?test\]|\[(?:Fact|Theory|Test|TestMethod)\])/,
];
/** A skipped test. */
export const SKIPPED =
  /\b(?:it|test|describe|context|suite|specify)(?:\.\w{1,20}){0,2}\.(?:skip|todo|fails|failing|skipIf|runIf|fixme|fail)\b|\bx(?:it|describe|test|context|specify|example)(?:\s{0,5}\(|\s{1,5}["'])|\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|\bpytest_(?:collection_modifyitems|ignore_collect|runtest_\w{1,20}|pycollect_\w{1,20})\b|@(?:unittest\.(?:skip|skipIf|skipUnless|expectedFailure)|Disabled|Ignore)\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bself\.skipTest\(|\bcollect_ignore|^\s{0,5}\/\/go:build\s{1,5}ignore\b|\b(?:t|ctx|context|this|testInfo|tb|b)\.[sS]kip(?:f|Now)?\(|#\[ignore|#\[cfg_attr\([^)]{1,200}\bignore\b|#!?\[cfg\(any\(\)\)\]|\[(?:Ignore|Skip)\b|\bSkip\s{0,5}=\s{0,5}"|\bmarkTest(?:Skipped|Incomplete)\(|^\s{0,200}(?:skip|pending)\b|,\s{0,5}\{\s{0,5}(?:skip|todo)\s{0,5}:/;
export const SKIPPED_ELSEWHERE =
  /\bSkipTest\b|@skip\w{0,20}\b|\bXCTSkip\w{0,20}\b|\bXCTExpectFailure\b|\bGTEST_SKIP\b|\bDISABLED_\w|\bassum(?:e|ing)\w{0,20}\(|@(?:Disabled|Enabled)\w{1,60}|\.disabled\(|\benabled\s{0,5}=\s{0,5}false|@Skip\b|\bskip\s{0,5}(?::|=>?)\s{0,5}(?:true|["'`])|[:@](?:module)?tag\s{1,5}(?::skip|skip:)|\bskip_all\b|[)}\]]\s{0,5}(?:->|\.)(?:skip|todo)\(|__test__\s{0,5}=\s{0,5}False|^\s{0,200}del\s{1,5}test|\bexpectNotToPerformAssertions\b|\bAssert\.(?:Pass|Ignore|Inconclusive)\(|\bSUCCEED\(\)|^\s{0,5}\/\/ \+build\b|^\s{0,5}\/\/go:build\b|^__END__\s{0,5}$|\bfunc\s{1,5}TestMain\(/;
/** A retried or flaky test. */
export const REPEATED =
  /\bretryTimes\s{0,5}\(|\bflaky\b|\breruns\s{0,5}=|\bretr(?:y|ies)\s{0,5}[:(=]\s{0,5}\d|@(?:Flaky|Retry\w{0,20}|RepeatedIfExceptionsTest)\b/i;
/** A condition on a separate line before a test. */
export const CONDITION =
  /^\s{0,200}(?:@\w|#!?\[|\[\w).{0,300}\b(?:skip|ignore|disabled?|enabled|explicit|xfail|should_panic|cfg|requires?\w{0,20}|only|expected|timeout|tag|moduletag|group|category)\b|^\s{0,200}#!?\[(?:cfg|should_panic|Requires\w{0,20})\b|^\s{0,200}\[(?:Explicit|Ignore)\b/i;
/** Replaces a test function such as `expect`. */
export const REPLACED =
  /\b(?:globalThis|global|window)\.(?:it|test|describe|expect|assert)\b(?:\.\w{1,20})?\s{0,5}=(?!=)|\b(?:const|let|var|function|def)\s{1,5}(?:it|test|describe|expect|assert)\s{0,5}[=(]|\bexpect\.extend\(|^\s{0,200}(?:expect|assert)\.\w{1,30}\s{0,5}=(?!=)/;
/** Ends a test early, possibly under a condition. */
export const ENDS_EARLY =
  /^\s{0,200}(?:(?:if|unless|case)\b.{0,300}?[\s):{;&])?(?:return\b(?:\s{1,5}(?:true|false|null|undefined|None|nil|0|1|void 0|Ok\(\(\)\)|Promise\.resolve\(\)|(?:unittest|pytest|t|this)\.[sS]kip.{0,200}))?|(?:process\.|sys\.|os\._?|System\.|std::process::|Environment\.|Deno\.|std::)?[eE]xit(?:\(0?\)|\s{1,5}0)|quit\(\)|raise SystemExit)\s{0,5}(?:;|\bif\b.{0,200}|\bunless\b.{0,200})?\s{0,5}\}?\s{0,5}$/;
/** Ignores a failure. */
export const SWALLOWED =
  /\|\|\s{0,5}(?:true|:|exit\s{1,5}0)\b|\|\|\s{0,5}:\s{0,5}(?:["';]|$)|^\s{0,200}set\s{1,5}\+e\b|^\s{0,200}exit\s{1,5}0\s{0,5}$/;
/** A value alone on its line: the expected value of an assertion that spans lines. */
export const VALUE =
  /^\s{0,200}(?:".{0,1000}"|'.{0,1000}'|`.{0,1000}`|-?\d[\d._]{0,30}|true|false|null|None|True|False|undefined|nil)\s{0,5}[,)\]};]{0,6}\s{0,5}$/;
/** Runs only some tests of a file. */
export const ONLY =
  /\b(?:it|test|describe|context|suite|specify)(?:\.\w{1,20}){0,2}\.only\b|\bf(?:it|describe|context|specify)(?:\s{0,5}\(|\s{1,5}["\x27])|\bonly\s{0,5}:\s{0,5}true|[)}\]]\s{0,5}(?:->|\.)only\(|,\s{0,5}:focus\b|\bfocus:\s{0,5}true/;
export const ASSERTED =
  /\bexpect\s{0,5}\(|\bassert\w{0,40}!?\s{0,5}[.(]|\bassert\s|\bshould\b|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail)\(|\brequire\.\w{1,40}\(|\bself\.assert\w{1,40}\(|#expect\(|#require\(|\b(?:XCTAssert\w{0,40}|EXPECT_\w{1,40}|ASSERT_\w{1,40}|REQUIRE\w{0,20}|CHECK\w{0,20})\s{0,5}\(|\bshouldBe\b|\bverify\s{0,5}\(/;
/** A blank line or a comment. */
export const INSIGNIFICANT =
  /^\s{0,500}$|^\s{0,200}(?:\/\/(?!\s{0,5}(?:Unordered output|Output):)|#(?![[!]|\s{0,5}(?:if|else|endif|include|define)\b)|\/?\*|--|\*\/|;;)/;
/** An import. */
export const IMPORTS =
  /^\s{0,200}(?:import\b|from\s{1,5}\S{1,200}\s{1,5}import\b|(?:const|let|var)\s.{0,500}\brequire\s{0,5}\(|require(?:_relative)?\b|use\s|using\s|#include\b|package\s|@testable\s|extern\s|load\b|library\(|set\s{1,5}-\w{0,10}e)/;
