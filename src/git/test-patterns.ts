/** Files that tell a service what to run on each change. */
export const CI =
  /(?:^|\/)(?:\.github\/(?:workflows|actions)\/|\.(?:gitea|forgejo)\/workflows\/|\.(?:circleci|ci|buildkite|semaphore|builds|azure-pipelines|teamcity|tekton|drone|gitlab\/ci|woodpecker|husky)\/|\.gitlab-ci[\w.-]{0,100}\.ya?ml$|\.(?:drone|travis|cirrus|zuul|woodpecker|pre-commit-config|appveyor)\.(?:ya?ml|star)$|(?:appveyor|cloudbuild|wercker|buildspec|codemagic|bitrise|lefthook|bitbucket-pipelines|zuul)\.ya?ml$|azure-pipelines[\w.-]{0,100}\.ya?ml$|action\.ya?ml$|Jenkinsfile(?:\.\w{1,20})?$)/i;
/** By its name, and not only by its folder, a runner finds a file. */
export const NAMED_AS_TEST =
  /(?:^|\/)(?:test_[^/]{1,200}|conftest)\.py$|(?:^|\/)(?:tests?|specs?)\.[a-z]{1,5}$|[._-](?:test|spec|tests|e2e|cy)\.(?!go$|py$)[a-z]{1,5}$|_test\.(?:go|py|rb|exs|dart|cc|cpp|c|lua)$|_spec\.(?:rb|lua)$|(?:Test|Tests|Spec|Suite|IT)\.(?:java|kt|kts|cs|fs|scala|groovy|swift|php|hs)$|\.(?:bats|t|feature)$/;
export const TEST_FOLDER = /(?:^|[/._-])(?:tests?|specs?|__tests__|testing|testdata|e2e)\//i;
/** As Java, Swift and C# write it. */
export const TEST_FOLDER_IN_WORDS = /[a-z]Tests?\//;
/** In folders that hold specifications as well, only code counts. */
export const DATA_FOLDER = /(?:^|[/._-])(?:tests?|__tests__|testing|testdata|e2e|fixtures)\//i;
export const PROSE = /\.(?:md|mdx|rst|adoc)$|(?:^|\/)\.git(?:ignore|attributes|keep)$/i;
export const CODE =
  /\.(?:[cm]?[jt]sx?|vue|svelte|py|go|rs|java|kts?|rb|php|cs|swift|dart|exs?|fs|hs|lua|clj|zig|bats|t|feature|r|R|scala|groovy|c|cc|cpp|sh|bash|bats)$/;

/** Files that say which tests run, and how. */
export const RUNNER =
  /(?:^|\/)(?:(?:vitest|jest|karma|playwright|cypress|ava|wdio|web-test-runner)\.(?:config|conf|workspace)\.[cm]?[jt]sx?|\.mocharc(?:\.\w{1,5})?|jest\.config\.json|pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|phpunit(?:\.dist)?\.xml(?:\.dist)?|\.rspec|\.nextest\.toml|nextest\.toml|dart_test\.yaml|bunfig\.toml|(?:jest|vitest)\.setup\.[cm]?[jt]sx?|CTestTestfile\.cmake|\.nycrc(?:\.\w{1,5})?|nyc\.config\.[cm]?js|\.c8rc(?:\.\w{1,5})?|\.coveragerc|\.?codecov\.ya?ml|\.simplecov)$/i;
/** Files in which commands have names, so that "test" may come to mean something else. */
export const RECIPES =
  /(?:^|\/)(?:package\.json|deno\.jsonc?|composer\.json|GNUmakefile|[Mm]akefile|[Jj]ustfile|\.justfile|[Tt]askfile\.ya?ml|mise\.toml|Rakefile|pyproject\.toml|setup\.cfg|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|CMakeLists\.txt|meson\.build|BUILD(?:\.bazel)?|build\.sbt|build\.zig|mix\.exs|Package\.swift|project\.json|Earthfile|swarm\.config\.yaml|[\w.-]{1,200}\.(?:cs|fs)proj|vite\.config\.[cm]?[jt]s)$|\.(?:sh|bash)$/;
/** A line there that names or runs tests. */
export const RUNS_TESTS =
  /(?:^\s{0,200}|[{,]\s{0,20})["']?(?:pre|post)?(?:tests?|checks?|verify|lint|ci)(?:[:_.-][\w:.-]{1,40})?["']?\s{0,5}[:=(]|\b(?:pytest|unittest|vitest|jest|mocha|jasmine|ava|rspec|phpunit|ctest|add_test|nextest|surefire|failsafe|testTarget|\w{1,20}_test)\b|\b(?:npm|pnpm|yarn|bun|go|cargo|deno|mix|dotnet|swift|node)\s{1,5}(?:run\s{1,5})?(?:--)?test\b|\btest\/|_test\./;
/** A command that does nothing in the place of one that did something. */
export const DOES_NOTHING =
  /^\s{0,200}(?:RUN\s{1,5}|run:\s{0,5}|-\s{1,5})?[@-]?\s{0,5}(?:true|:|exit\s{1,5}0|(?:echo|printf)\b[^|&;]{0,500})\s{0,5}$/;
/** A setting there that can leave tests out. */
export const CHOOSES_TESTS =
  /\b(?:addopts|testpaths|python_files|norecursedirs|collect_ignore|skipTests|maven\.test\.skip|testFailureIgnore|ignoreFailures|passWithNoTests|testPathIgnorePatterns|testMatch|testRegex|testNamePattern|roots|rootDir|autotests|testOptions|exclude_tags|coverageThreshold|fail_under|check-coverage|thresholds?)\b|^\s{0,200}(?:harness|test|enabled)\s{0,5}=\s{0,5}false|\b(?:Compile|Content)\s{1,5}Remove=|\bTest\s{0,5}\/\s{0,5}(?:test|skip|unmanaged)|^\s{0,200}["']?(?:branches|functions|lines|statements|perFile)["']?\s{0,5}:\s{0,5}\d/;
/** Where the settings of other tools stand beside those of the tests', only these leave tests out. */
export const LEAVES_OUT = /\b(?:excludes?|include)\b/;
export const TELLS_RUNNER = /(?:^|\/)(?:deno\.jsonc?|build\.sbt|vite\.config\.[cm]?[jt]s|pom\.xml|build\.gradle(?:\.kts)?)$/;
/** Answers that tests are compared with. */
export const RECORDED =
  /(?:^|\/)(?:__snapshots__|__image_snapshots__|[\w.-]{1,200}-snapshots|cassettes)\/|\.(?:snap|golden|ambr)$|\.approved\.\w{1,10}$/;
/** Tests that stand beside the code they test. */
export const BESIDE = /\.(?:rs|zig|py|[cm]?[jt]sx?)$/;
/** A line of a test that stands in the documentation or among the code, wherever it stands. */
export const ASSERTED_BESIDE = /^\s{0,200}>>>\s|\bexpect\s{0,5}\(.{0,500}\)\.(?:not\.)?to[A-Z]/;

/** A test that is begun, with its name where the language gives it one. */
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
/** A test that is there and not run. */
export const SKIPPED =
  /\b(?:it|test|describe|context|suite|specify)(?:\.\w{1,20}){0,2}\.(?:skip|todo|fails|failing|skipIf|runIf|fixme|fail)\b|\bx(?:it|describe|test|context|specify|example)(?:\s{0,5}\(|\s{1,5}["'])|\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|\bpytest_(?:collection_modifyitems|ignore_collect|runtest_\w{1,20}|pycollect_\w{1,20})\b|@(?:unittest\.(?:skip|skipIf|skipUnless|expectedFailure)|Disabled|Ignore)\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bself\.skipTest\(|\bcollect_ignore|^\s{0,5}\/\/go:build\s{1,5}ignore\b|\b(?:t|ctx|context|this|testInfo|tb|b)\.[sS]kip(?:f|Now)?\(|#\[ignore|#\[cfg_attr\([^)]{1,200}\bignore\b|#!?\[cfg\(any\(\)\)\]|\[(?:Ignore|Skip)\b|\bSkip\s{0,5}=\s{0,5}"|\bmarkTest(?:Skipped|Incomplete)\(|^\s{0,200}(?:skip|pending)\b|,\s{0,5}\{\s{0,5}(?:skip|todo)\s{0,5}:/;
export const SKIPPED_ELSEWHERE =
  /\bSkipTest\b|@skip\w{0,20}\b|\bXCTSkip\w{0,20}\b|\bXCTExpectFailure\b|\bGTEST_SKIP\b|\bDISABLED_\w|\bassum(?:e|ing)\w{0,20}\(|@(?:Disabled|Enabled)\w{1,60}|\.disabled\(|\benabled\s{0,5}=\s{0,5}false|@Skip\b|\bskip\s{0,5}(?::|=>?)\s{0,5}(?:true|["'`])|[:@](?:module)?tag\s{1,5}(?::skip|skip:)|\bskip_all\b|[)}\]]\s{0,5}(?:->|\.)(?:skip|todo)\(|__test__\s{0,5}=\s{0,5}False|^\s{0,200}del\s{1,5}test|\bexpectNotToPerformAssertions\b|\bAssert\.(?:Pass|Ignore|Inconclusive)\(|\bSUCCEED\(\)|^\s{0,5}\/\/ \+build\b|^\s{0,5}\/\/go:build\b|^__END__\s{0,5}$|\bfunc\s{1,5}TestMain\(/;
/** A test that may fail now and then. */
export const REPEATED =
  /\bretryTimes\s{0,5}\(|\bflaky\b|\breruns\s{0,5}=|\bretr(?:y|ies)\s{0,5}[:(=]\s{0,5}\d|@(?:Flaky|Retry\w{0,20}|RepeatedIfExceptionsTest)\b/i;
/** A condition that stands before a test and was put there alone. */
export const CONDITION =
  /^\s{0,200}(?:@\w|#!?\[|\[\w).{0,300}\b(?:skip|ignore|disabled?|enabled|explicit|xfail|should_panic|cfg|requires?\w{0,20}|only|expected|timeout|tag|moduletag|group|category)\b|^\s{0,200}#!?\[(?:cfg|should_panic|Requires\w{0,20})\b|^\s{0,200}\[(?:Explicit|Ignore)\b/i;
/** Something else takes the place of what tests are written with. */
export const REPLACED =
  /\b(?:globalThis|global|window)\.(?:it|test|describe|expect|assert)\b(?:\.\w{1,20})?\s{0,5}=(?!=)|\b(?:const|let|var|function|def)\s{1,5}(?:it|test|describe|expect|assert)\s{0,5}[=(]|\bexpect\.extend\(|^\s{0,200}(?:expect|assert)\.\w{1,30}\s{0,5}=(?!=)/;
/** A test that ends before it has asked anything, perhaps only where it matters. */
export const ENDS_EARLY =
  /^\s{0,200}(?:(?:if|unless|case)\b.{0,300}?[\s):{;&])?(?:return\b(?:\s{1,5}(?:true|false|null|undefined|None|nil|0|1|void 0|Ok\(\(\)\)|Promise\.resolve\(\)|(?:unittest|pytest|t|this)\.[sS]kip.{0,200}))?|(?:process\.|sys\.|os\._?|System\.|std::process::|Environment\.|Deno\.|std::)?[eE]xit(?:\(0?\)|\s{1,5}0)|quit\(\)|raise SystemExit)\s{0,5}(?:;|\bif\b.{0,200}|\bunless\b.{0,200})?\s{0,5}\}?\s{0,5}$/;
/** A failure that is swallowed. */
export const SWALLOWED =
  /\|\|\s{0,5}(?:true|:|exit\s{1,5}0)\b|\|\|\s{0,5}:\s{0,5}(?:["';]|$)|^\s{0,200}set\s{1,5}\+e\b|^\s{0,200}exit\s{1,5}0\s{0,5}$/;
/** A value alone on its line: what an assertion that began above expects. */
export const VALUE =
  /^\s{0,200}(?:".{0,1000}"|'.{0,1000}'|`.{0,1000}`|-?\d[\d._]{0,30}|true|false|null|None|True|False|undefined|nil)\s{0,5}[,)\]};]{0,6}\s{0,5}$/;
/** Only some of the tests of a file are run. */
export const ONLY =
  /\b(?:it|test|describe|context|suite|specify)(?:\.\w{1,20}){0,2}\.only\b|\bf(?:it|describe|context|specify)(?:\s{0,5}\(|\s{1,5}["\x27])|\bonly\s{0,5}:\s{0,5}true|[)}\]]\s{0,5}(?:->|\.)only\(|,\s{0,5}:focus\b|\bfocus:\s{0,5}true/;
export const ASSERTED =
  /\bexpect\s{0,5}\(|\bassert\w{0,40}!?\s{0,5}[.(]|\bassert\s|\bshould\b|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail)\(|\brequire\.\w{1,40}\(|\bself\.assert\w{1,40}\(|#expect\(|#require\(|\b(?:XCTAssert\w{0,40}|EXPECT_\w{1,40}|ASSERT_\w{1,40}|REQUIRE\w{0,20}|CHECK\w{0,20})\s{0,5}\(|\bshouldBe\b|\bverify\s{0,5}\(/;
/** A line that a change may do without. */
export const INSIGNIFICANT =
  /^\s{0,500}$|^\s{0,200}(?:\/\/(?!\s{0,5}(?:Unordered output|Output):)|#(?![[!]|\s{0,5}(?:if|else|endif|include|define)\b)|\/?\*|--|\*\/|;;)/;
/** What only brings names into a file. */
export const IMPORTS =
  /^\s{0,200}(?:import\b|from\s{1,5}\S{1,200}\s{1,5}import\b|(?:const|let|var)\s.{0,500}\brequire\s{0,5}\(|require(?:_relative)?\b|use\s|using\s|#include\b|package\s|@testable\s|extern\s|load\b|library\(|set\s{1,5}-\w{0,10}e)/;
