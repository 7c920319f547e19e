import { posix } from "node:path";
import { uses } from "../manifests/manifest.ts";
import { type CommandFinder, certainIf, type Found, isWithin, showsTests, when } from "./scope.ts";

export const ofSbt: CommandFinder = (scope) => [
  certainIf(showsTests(scope, /\.(?:scala|java)$/), "test", "sbt test"),
  ["build", "sbt compile"],
];

/** With several solutions in one folder `dotnet` must be told which, and only the project knows. */
export const ofDotnet: CommandFinder = ({ manifest, view }) => {
  const all = view.manifests.filter(({ kind }) => kind === "dotnet");
  const solutions = all.filter(({ workspace }) => workspace !== undefined);
  if (manifest.workspace === undefined && solutions.some(({ folder }) => isWithin(manifest.folder, folder))) return [];
  // Of several files in one folder the tool wants one named.
  const beside = all.filter(({ folder }) => folder === manifest.folder);
  const [solution, another] = beside.filter(({ workspace }) => workspace !== undefined);
  if (beside.length > 1 && (manifest !== solution || another)) return [];
  const named = beside.length > 1 ? ` ${posix.basename(manifest.file)}` : "";
  if (!/^[\w .-]*$/.test(named)) return [];
  const tested = all.some((one) => isWithin(one.folder, manifest.folder) && uses(one, "Microsoft.NET.Test.Sdk"));
  return [...when(tested, "test", `dotnet test${named}`), ["build", `dotnet build${named}`]];
};

export const ofRuby: CommandFinder = ({ manifest, has, text }) => {
  const rspec = has(".rspec") || uses(manifest, "rspec") || uses(manifest, "rspec-rails");
  const ways: [holds: boolean, command: string][] = [
    [rspec, "bundle exec rspec"],
    [has("bin/rails"), "bin/rails test"],
    [hasTestTask(text("Rakefile")), "bundle exec rake test"],
    [has("bin/test"), "bin/test"],
  ];
  const way = ways.find(([holds]) => holds);
  return [
    ...when(way !== undefined, "test", way?.[1] ?? ""),
    ...when(uses(manifest, "rubocop") || has(".rubocop.yml"), "lint", "bundle exec rubocop"),
  ];
};

/** A task of that name, or a list of task names that contains it. */
function hasTestTask(rakefile: string): boolean {
  if (/\b(?:TestTask|task\s+:?["']?test)\b/.test(rakefile)) return true;
  return rakefile
    .split("\n")
    .some((line) => /^[ \t]*%[wi][([{]/.test(line) && /[([{ ]test[ )\]}]/.test(line) && /\.each\b/.test(line));
}

export const ofPhp: CommandFinder = ({ manifest, has, isTested }) => {
  const { scripts } = manifest;
  const has1 = (...names: string[]) => names.some(has);
  const phpunit = has1("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml");
  const ways: [holds: boolean, command: string][] = [
    [scripts.has("test"), "composer run test"],
    [has("artisan"), "php artisan test"],
    [uses(manifest, "pestphp/pest"), "vendor/bin/pest"],
    [phpunit, "vendor/bin/phpunit"],
    [uses(manifest, "phpunit/phpunit") && isTested(/^tests\/|\/tests\//) && isTested(/Test\.php$/), "vendor/bin/phpunit tests"],
  ];
  const way = ways.find(([holds]) => holds);
  const stan = uses(manifest, "phpstan/phpstan") || has1("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon");
  const judged: Found[] = [
    ...when(stan, "lint", "vendor/bin/phpstan analyse"),
    ...when(has1("psalm.xml", "psalm.xml.dist"), "lint", "vendor/bin/psalm"),
    ...when(has1("phpcs.xml", "phpcs.xml.dist", ".phpcs.xml"), "lint", "vendor/bin/phpcs"),
    ...when(has1(".php-cs-fixer.php", ".php-cs-fixer.dist.php"), "lint", "vendor/bin/php-cs-fixer fix --dry-run --diff"),
  ];
  return [
    ...when(way !== undefined, "test", way?.[1] ?? ""),
    ...(scripts.has("lint") ? when(true, "lint", "composer run lint") : judged),
  ];
};

export const ofElixir: CommandFinder = (scope) => [
  certainIf(showsTests(scope, /_test\.exs$/), "test", "mix test"),
  certainIf(scope.has(".formatter.exs"), "lint", "mix format --check-formatted"),
  ["build", "mix compile"],
];

export const ofDart: CommandFinder = (scope) => {
  const dart = uses(scope.manifest, "flutter") ? "flutter" : "dart";
  return [
    certainIf(showsTests(scope, /_test\.dart$/), "test", `${dart} test`),
    certainIf(scope.has("analysis_options.yaml"), "lint", `${dart} analyze`),
  ];
};
