/** Names by which the usual runners find tests, and folders that hold nothing else. */
const NAMED =
  /(?:^|\/)test_[^/]+\.(?:py|c|cc|cpp|rb)$|(?:^|\/)tests\.py$|_test\.(?:py|go|rb|exs|dart|c|cc|cpp|cxx|[jt]sx?)$|_spec\.rb$|[.-](?:test|spec)\.[cm]?[jt]sx?$|Tests?\.(?:java|kt|cs|fs|vb|php|swift|groovy)$|(?:Spec|Suite)\.(?:scala|groovy|kt)$/;
const FOLDER = /(?:^|\/)(?:tests?|__tests__|unittests?)\//i;
const CODE = /\.(?:py|rs|[cm]?[jt]sx?|c|cc|cpp|cxx|cu|java|kt|scala|groovy|cs|fs|rb|php|exs|swift|dart|lua|pl|t|sh|bats)$/i;
const MAYBE = /test|spec|suite/i;
const NOT_OURS = /(?:^|\/)(?:node_modules|vendor|third_?party|3rdparty)\//;

/** Whether a file holds tests or belongs to them, by its name alone. */
export const isTestFile = (file: string): boolean =>
  MAYBE.test(file) && (NAMED.test(file) || (FOLDER.test(file) && CODE.test(file))) && !NOT_OURS.test(file);
