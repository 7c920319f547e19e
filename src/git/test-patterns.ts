/** Matches what any of the patterns matches. */
const anyOf = (...patterns: readonly RegExp[]) => new RegExp(patterns.map(({ source }) => source).join("|"), patterns[0]?.flags);

/** CI configuration. */
export const CI =
  /(?:^|\/)(?:\.github\/(?:workflows|actions)\/|\.(?:gitea|forgejo)\/workflows\/|\.(?:circleci|ci|buildkite|semaphore|builds|azure-pipelines|teamcity|tekton|drone|gitlab\/ci|woodpecker|husky)\/|\.gitlab-ci[\w.-]{0,100}\.ya?ml$|\.(?:drone|travis|cirrus|zuul|woodpecker|pre-commit-config|appveyor)\.(?:ya?ml|star)$|(?:appveyor|cloudbuild|wercker|buildspec|codemagic|bitrise|lefthook|bitbucket-pipelines|zuul)\.ya?ml$|azure-pipelines[\w.-]{0,100}\.ya?ml$|action\.ya?ml$|Jenkinsfile(?:\.\w{1,20})?$)/i;
/** Files that a test runner finds by their name. */
export const NAMED_AS_TEST =
  /(?:^|\/)(?:test_[^/]{1,200}\.(?:py|rb|c|cc|cpp|ml|nim|jl)|conftest\.py|Tests?[A-Z][^/]{0,200}\.(?:java|cc|cpp))$|(?:^|\/)(?:tests?|specs?)\.[a-z]{1,5}$|[._-](?:test|spec|tests|e2e|cy)\.(?!go$|py$)[a-z]{1,5}$|_test\.(?:go|py|rb|exs|dart|cc|cpp|c|lua)$|_spec\.(?:rb|lua)$|(?:Test|Tests|TestCase|Spec|Suite|IT|Cest|Cept)\.(?:java|kt|kts|cs|fs|vb|scala|groovy|swift|php|hs|m|mm|cc|cpp)$|_unittests?\.(?:cc|cpp)$|_SUITE\.erl$|\.t\.sol$|\.Tests?\.ps1$|\.(?:bats|t|feature|phpt|robot)$/;
export const TEST_FOLDER = /(?:^|[/._-])(?:tests?|specs?|__tests__|testing|testdata|e2e)\//i;
/** Folder names as in Java, Swift and C#. */
export const TEST_FOLDER_IN_WORDS = /[a-zA-Z]Tests?\//;
/** Folders in which every file belongs to tests; folders that may also contain specifications are not listed. */
export const DATA_FOLDER = /(?:^|[/._-])(?:tests?|__tests__|testing|testdata|e2e|fixtures|__fixtures__|__mocks__)\//i;
export const PROSE = /\.(?:md|mdx|rst|adoc)$|(?:^|\/)\.git(?:ignore|attributes|keep)$/i;
export const CODE =
  /\.(?:[cm]?[jt]sx?|vue|svelte|py|go|rs|java|kts?|rb|php|cs|swift|dart|exs?|fs|hs|lua|clj|zig|bats|t|feature|r|R|scala|groovy|c|cc|cpp|cxx|h|hpp|m|mm|vb|erl|sol|ml|nim|jl|pl|pm|phpt|robot|ps1|sh|bash|bats)$/;
/** Folders and names that runners pass over: of other systems, hidden, generated, or below the crates of Rust's tests. */
export const PASSED_OVER =
  /(?:^|\/)(?:node_modules|dist|build|out|target|vendor|venv|testdata|fixtures|__fixtures__|\.[^/]{1,200}|_(?!_)[^/]{1,200})\/|(?:^|\/)[_.][^/]{1,200}_test\.go$|_(?:aix|android|darwin|dragonfly|freebsd|illumos|ios|js|linux|netbsd|openbsd|plan9|solaris|wasip1|windows|386|amd64|arm|arm64|loong64|mips\w{0,4}|ppc64\w{0,2}|riscv64|s390x|wasm)_test\.go$|(?:^|\/)tests\/[^/]{1,200}\/(?!main\.rs$)[^/]{1,200}\.rs$/;

/** Test runner configuration, and files that take a runner's place. */
export const RUNNER = anyOf(
  /(?:^|\/)(?:(?:vitest|jest|karma|playwright|cypress|ava|wdio|web-test-runner)\.(?:config|conf|workspace)\.[cm]?[jt]sx?|\.mocharc(?:\.\w{1,5})?|jest\.config\.json|pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|phpunit(?:\.dist)?\.xml(?:\.dist)?|\.rspec|\.nextest\.toml|nextest\.toml|dart_test\.yaml|bunfig\.toml|(?:jest|vitest)\.setup\.[cm]?[jt]sx?|CTestTestfile\.cmake|\.nycrc(?:\.\w{1,5})?|nyc\.config\.[cm]?js|\.c8rc(?:\.\w{1,5})?|\.coveragerc|\.?codecov\.ya?ml|\.simplecov)$/i,
  /(?:^|\/)(?:vitest|jest|karma|playwright|cypress|ava|wdio|web-test-runner|nightwatch|jasmine|stryker|cucumber)[\w.-]{0,60}(?:config|conf|workspace|setup|e2e)[\w.-]{0,60}\.(?:[cm]?[jt]sx?|json|ya?ml)$/,
  /(?:^|\/)(?:(?:cypress|jasmine|nightwatch|cucumber)\.(?:json|ya?ml|[cm]?[jt]s)|\.taprc|\.testcaferc\.\w{1,5}|behat\.ya?ml(?:\.dist)?|codeception\.ya?ml|[\w-]{1,60}\.suite\.ya?ml|\.testcoverage\.ya?ml|\.?tarpaulin\.toml|infection\.json5?|testng[\w-]{0,60}\.xml|junit-platform\.properties)$/,
  /\.(?:runsettings|xctestplan)$/,
  /(?:^|\/)(?:pytest|unittest|sitecustomize|usercustomize)\.py$/,
);
/** Files that define named commands such as "test". */
export const SCRIPT_FILES =
  /(?:^|\/)(?:package\.json|deno\.jsonc?|composer\.json|GNUmakefile|[Mm]akefile|[Jj]ustfile|\.justfile|[Tt]askfile\.ya?ml|mise\.toml|Rakefile|pyproject\.toml|setup\.cfg|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|CMakeLists\.txt|meson\.build|BUILD(?:\.bazel)?|build\.sbt|build\.zig|mix\.exs|Package\.swift|project\.json|Earthfile|swarm\.config\.yaml|[\w.-]{1,200}\.(?:cs|fs)proj|vite\.config\.[cm]?[jt]s|\.npmrc|\.yarnrc(?:\.yml)?|\.cargo\/config(?:\.toml)?|(?:Docker|Container)file(?:\.[\w.-]{1,60})?|(?:docker-)?compose[\w.-]{0,60}\.ya?ml|(?:nx|turbo|angular|lerna|rush)\.json|moon\.ya?ml|settings\.gradle(?:\.kts)?|Directory\.Build\.(?:props|targets)|(?:Grunt|gulp)file\.[cm]?[jt]s|[\w.-]{1,200}\.(?:slnx?|vbproj|xcscheme))$|\.(?:sh|bash)$/;
/** A line of those files that names or runs tests. */
export const RUNS_TESTS =
  /(?:^\s{0,200}|[{,]\s{0,20})["']?(?:pre|post)?(?:tests?|checks?|verify|lint|ci)(?:[:_.-][\w:.-]{1,40})?["']?\s{0,5}[:=(]|\b(?:pytest|unittest|vitest|jest|mocha|jasmine|ava|rspec|phpunit|ctest|add_test|nextest|surefire|failsafe|testTarget|\w{1,20}_test)\b|\b(?:npm|pnpm|yarn|bun|go|cargo|deno|mix|dotnet|swift|node)\s{1,5}(?:run\s{1,5})?(?:--)?test\b|\b(?:tests?|specs?|e2e)\/|_test\.|[.]Tests?\b|\b(?:llvm-cov|tarpaulin)\b|--fail-under|^\s{0,200}(?:<module>|include\b)|^\s{0,200}["'][\w.-]{0,100}tests?["'],?\s{0,5}$/;
/** The command of that name, without any of its variants. */
export const TEST_COMMAND = /^\s{0,200}["']?(?:pre|post)?(?:tests?|checks?|verify|lint|ci)["']?\s{0,5}[:=]/;
/** The same with a command that does nothing on the same line. */
export const NO_OP_VALUE = /[:=]\s{0,5}["'](?:true|:|exit\s{1,5}0|echo\b[^"'&|;]{0,300})["']/;
/** A Makefile that is read instead of one that was there. */
export const READ_FIRST = /(?:^|\/)(?:GNUmakefile|makefile)$/;
/** A command that does nothing. */
export const NO_OP =
  /^\s{0,200}(?:RUN\s{1,5}|run:\s{0,5}|-\s{1,5})?[@-]?\s{0,5}(?:true|:|exit\s{1,5}0|(?:echo|printf)\b[^|&;]{0,500})\s{0,5}$/;
/** A setting that can exclude tests. */
export const SELECTS_TESTS = anyOf(
  /\b(?:addopts|testpaths|python_files|norecursedirs|collect_ignore|skipTests|maven\.test\.skip|testFailureIgnore|ignoreFailures|passWithNoTests|testPathIgnorePatterns|testMatch|testRegex|testNamePattern|roots|rootDir|autotests|testOptions|exclude_tags|coverageThreshold|fail_under|check-coverage|thresholds?)\b|^\s{0,200}(?:harness|test|enabled)\s{0,5}=\s{0,5}false|\b(?:Compile|Content)\s{1,5}Remove=|\bTest\s{0,5}\/\s{0,5}(?:test|skip|unmanaged)|^\s{0,200}["']?(?:branches|functions|lines|statements|perFile)["']?\s{0,5}:\s{0,5}\d/,
  /\b(?:python_(?:classes|functions)|isIgnoreFailures|excludeTestsMatching|includeTestsMatching|(?:ex|in)clude(?:Tags|Categories)|excludedGroups|skipITs|skipExec|failIfNoTests|onlyIf|test_(?:paths|pattern|ignore_filters|load_filters)|exclude_(?:lines|also)|script-shell|ignore-?[sS]cripts|IsTestProject|VSTestTestCaseFilter|minimum_coverage|skippedTests|SkippedTests)\b/,
  /\bomit\s{0,5}=|^\s{0,200}runner\s{0,5}=|\bdoctest\s{0,5}=\s{0,5}false|\benabled\s{0,5}=\s{0,5}false|\bskipped\s{0,5}=\s{0,5}"YES"/,
  /--(?:ignore|deselect)=|--(?:deselect|testPathIgnorePatterns|invert|fail-under)\b/,
  /<(?:minimum|Threshold\w{0,10})>|<skip\w{0,10}>\s{0,5}true|\bminimum\s{0,5}=|\bmin(?:Bound|Value)\b/,
);
/** The settings that exclude tests in files shared with other tools. */
export const EXCLUDES = /\b(?:excludes?|include)\b/;
export const SHARED_SETTINGS =
  /(?:^|\/)(?:Package\.swift|deno\.jsonc?|build\.sbt|vite\.config\.[cm]?[jt]s|pom\.xml|build\.gradle(?:\.kts)?)$/;
/** Recorded results that tests compare with. */
export const SNAPSHOT =
  /(?:^|\/)(?:__snapshots__|__image_snapshots__|[\w.-]{1,200}-snapshots|cassettes)\/|\.(?:snap|golden|ambr)$|\.(?:approved|verified)\.\w{1,10}$/;
/** Languages that allow tests in source files. */
export const INLINE_TESTS = /\.(?:rs|zig|py|ex|[cm]?[jt]sx?)$/;
/** An assertion in a doc comment or in source code. */
export const INLINE_ASSERTION =
  /^\s{0,200}(?:>>>|iex(?:\(\d{1,5}\))?>)\s|^\s{0,200}\/\/[/!].{0,300}\bassert\w{0,10}!\s{0,5}\(|\bexpect\s{0,5}\(.{0,500}\)\.(?:not\.)?to[A-Z]/;

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
  /\bSkipTest\b|@skip\w{0,20}\b|\bXCTSkip\w{0,20}\b|\bXCTExpectFailure\b|\bGTEST_SKIP\b|\bDISABLED_\w|\bassum(?:e|ing)\w{0,20}\(|@(?:Disabled|Enabled)\w{1,60}|\.disabled\(|\benabled\s{0,5}=\s{0,5}false|@Skip\b|\bskip\s{0,5}(?::|=>?)\s{0,5}(?:true|["'`])|[:@](?:module|describe)?tag\s{1,5}(?::skip|skip:)|\bskip_all\b|[)}\]]\s{0,5}(?:->|\.)(?:skip|todo)\(|__test__\s{0,5}=\s{0,5}False|^\s{0,200}del\s{1,5}test|\bexpectNotToPerformAssertions\b|\bAssert\.(?:Pass|Ignore|Inconclusive)\(|\bSUCCEED\(\)|^\s{0,5}\/\/ \+build\b|^\s{0,5}\/\/go:build\b|^__END__\s{0,5}$|\bfunc\s{1,5}TestMain\(/;
export const SKIPPED_BY_CALL = anyOf(
  // Of a suite, a hook or a library.
  /\.Skip(?:f|Now|If|Unless|When)\(|\.Skip\(\s{0,5}["'`)]|\bSkip\.\w{1,20}\(|\bAssert\.Skip\w{0,20}\(|=>\s{0,5}skip\(/,
  /^\s{0,200}(?:Skip|SKIP|cancel|[A-Z]{0,10}SKIP)\(|\bskip_(?:on|if)\w{0,40}\(|\btestthat::skip\b|\bpendingWith\b|\bSet-ItResult\b|\s-Skip\b/,
  /\bAssumptions\.abort\(|\b(?:TestAborted|Skip|AssumptionViolated)Exception\b|\bpytest\.skip\.Exception\b|\bSkipZigTest\b/,
  // By a mark.
  /@DoNotDiscover\b|^\s{0,200}@(?:wip|ignore|pending|manual|disabled)\b|\brobot:skip\b|\[<(?:Ignore|Explicit)\b|\$TODO\s{0,5}=|^\s{0,200}#_\s{0,5}$|@ts-nocheck\b/,
  // By what chooses the tests.
  /\b(?:undef|remove)_method\b|\bfilter_run(?:_(?:in|ex)cluding)?\b|\bExUnit\.(?:start|configure)\(.{0,300}\b(?:exclude|include|only)\b/,
  /\bpytest_(?:sessionfinish|cmdline_(?:main|parse)|report_teststatus|itemcollected|collect_\w{1,20}|make_\w{1,20}|deselected|pyfunc_call|load_initial_conftests)\b/,
);
/** The start of a tested example in Rust's documentation, and of one that is not run or not tested. */
export const EXAMPLE = /^\s{0,200}\/\/[/!]\s{0,5}```\s{0,5}(?:rust)?\s{0,5}$/;
export const IDLE_EXAMPLE =
  /^\s{0,200}\/\/[/!]\s{0,5}```\s{0,5}(?:rust,\s{0,3})?(?:ignore|no_run|compile_fail|text|should_panic)\b/;
/** A retried or flaky test. */
export const REPEATED =
  /\bretryTimes\s{0,5}\(|\bflaky\b|\breruns\s{0,5}=|\bretr(?:y|ies)\s{0,5}[:(=]\s{0,5}\d|@(?:Flaky|Retry\w{0,20}|RepeatedIfExceptionsTest)\b/i;
/** A condition on a separate line before a test. */
export const CONDITION =
  /^\s{0,200}\*\s{0,5}@(?:group|requires|doesNotPerformAssertions)\b|^\s{0,200}(?:@\w|#!?\[|\[\w).{0,300}\b(?:skip|ignore|disabled?|enabled|explicit|xfail|should_panic|cfg|requires?\w{0,20}|only|expected|timeout|tag|moduletag|group|category)\b|^\s{0,200}#!?\[(?:cfg|should_panic|Requires\w{0,20})\b|^\s{0,200}\[(?:Explicit|Ignore|TestCategory)\b/i;
/** Replaces a test function such as `expect`, or a library's assertion. */
export const REPLACED = anyOf(
  /\b(?:globalThis|global|window)\.(?:it|test|describe|expect|assert)\b(?:\.\w{1,20})?\s{0,5}=(?!=)|\b(?:const|let|var|function|def)\s{1,5}(?:it|test|describe|expect|assert)\s{0,5}[=(]|\bexpect\.extend\(|^\s{0,200}(?:expect|assert)\.\w{1,30}\s{0,5}=(?!=)/,
  /\b(?:fun|func|function|def|void)\s{1,5}(?:assert(?:Equals|Same|That|True|False|Null|NotNull|Throws|Count|Contains|InstanceOf|_equal|_nil|_raises)|refute|XCTAssert\w{0,40})\s{0,5}[(<=]/,
  /\bdef\s{1,5}assert(?:Equal|True|False|In|Is\w{0,10}|Raises)\(self\b|\bself\.assert\w{1,40}\s{0,5}=(?!=)|\bmacro_rules!\s{1,5}(?:debug_)?assert(?:_eq|_ne)?\b/,
  /^\s{0,200}#\s{0,5}(?:define|undef)\s{1,5}(?:NDEBUG|assert|(?:EXPECT|ASSERT|REQUIRE|CHECK|TEST)\w{0,40})\b|\b(?:class|object|struct)\s{1,5}Assert\b/,
  /\b(?:spyOn|stub|replace)\(\s{0,5}(?:assert|expect|globalThis)\b|\bObject\.(?:defineProperty|assign)\(\s{0,5}(?:globalThis|global|window|assert|expect)\b/,
);
/** Replaces one of the project's own modules. */
export const MOCKED = /\b(?:vi|jest)\.(?:doMock|mock|setMock|unstable_mockModule)\(\s{0,5}["'`](?:\.{1,2}\/|[@~#]\/)/;
/** Ends a test early, possibly under a condition. */
export const ENDS_EARLY =
  /^\s{0,200}(?:(?:if|unless|case)\b.{0,300}?[\s):{;&])?(?:return\b(?:\s{1,5}(?:true|false|null|undefined|None|nil|0|1|void 0|Ok\(\(\)\)|Promise\.resolve\(\)|(?:unittest|pytest|t|this)\.[sS]kip.{0,200}))?|(?:process\.|sys\.|os\._?|System\.|std::process::|Environment\.|Deno\.|std::)?[eE]xit(?:\(0?\)|\s{1,5}0)|quit\(\)|raise SystemExit)\s{0,5}(?:;|\bif\b.{0,200}|\bunless\b.{0,200})?\s{0,5}\}?\s{0,5}$/;
/** Returns a value, which ends a test that has more lines. */
export const RETURNS = /^\s{0,200}(?:await\s[^;]{1,100};\s{0,5})?return\b/;
/** Ends the program that runs the tests, or says that it succeeded. */
export const ENDS_PROGRAM =
  /\bprocess\.(?:exit|reallyExit)\(0?\)|\bprocess\.exitCode\s{0,5}=(?!=)|\b_exit\(0\)|\bat_?exit\b|\bexitstatus\s{0,5}=(?!=)|^\s{0,200}(?:exit|die)(?:!|\(\))?(?:\s{1,5}0)?\s{0,5};?\s{0,5}$|\bos\.Exit\(0\)|\bSystem\.exit\(0\)|\bprocess::exit\(0\)|\bEnvironment\.Exit\(0\)|\bDeno\.exit\(0?\)/;
/** Catches what a test throws, without a line of its own before it. */
export const RESCUES = /^\s{0,200}rescue\b/;
/** Ignores a failure. */
export const SWALLOWED =
  /\|\|\s{0,5}(?:true|:|exit\s{1,5}0)\b|\|\|\s{0,5}:\s{0,5}(?:["';]|$)|^\s{0,200}set\s{1,5}\+e\b|^\s{0,200}exit\s{1,5}0\s{0,5}$|(?:\bthen|&&)\s{1,5}exit\s{1,5}0\b|^\s{0,200}trap\b.{0,300}\bexit\s{1,5}0\b|^\.IGNORE\b|^\s{0,20}(?:export\s{1,5})?(?:GNU)?MAKEFLAGS\b|^\s{0,20}(?:export\s{1,5})?SHELL\s{0,5}[:?+]?=.{0,200}\b(?:true|echo)\b|\bRake::Task\[.{1,100}\]\.clear\b/;
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
  /^\s{0,500}$|^\s{0,200}(?:\/\/(?!\s{0,5}(?:(?:Unordered output|Output):|@ts-expect-error\b))|#(?![[!]|\s{0,5}(?:if|else|endif|include|define)\b)|\/?\*(?!\s{0,5}@(?:test|dataProvider|testWith|depends)\b)|--|\*\/|;;)/;
/** An import. */
export const IMPORTS =
  /^\s{0,200}(?:import\b|from\s{1,5}\S{1,200}\s{1,5}import\b|(?:const|let|var)\s.{0,500}\brequire\s{0,5}\(|require(?:_relative)?\b|use\s|using\s|#include\b|package\s|@testable\s|extern\s|load\b|library\(|set\s{1,5}-\w{0,10}e)/;
