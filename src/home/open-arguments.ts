import { isExact } from "../lib/glob.ts";

const wordSet = (text: string) => new Set(text.split(/\s+/));

/**
 * Programs whose arguments can run anything: shells and interpreters, launchers, build tools and package managers, editors
 * and pagers, and programs with an option that names a program.
 */
const RUNNERS = wordSet(`
  sh bash dash zsh ksh ash fish csh tcsh busybox toybox eval exec source command builtin trap . pwsh powershell
  env sudo doas su runuser setpriv chroot unshare nsenter bwrap flatpak systemd-run at batch cron crontab
  nice ionice chrt taskset timeout time nohup setsid stdbuf script expect watch entr xargs parallel strace ltrace gdb lldb valgrind perf flock
  find fd fdfind locate awk gawk mawk nawk sed ed ex vi vim nvim view emacs nano less more most man info tar zip unzip cpio rsync scp sftp ssh
  python python2 python3 pypy pypy3 node nodejs deno bun ts-node tsx perl ruby irb php lua luajit tclsh wish Rscript R julia ghci runghc scala groovy java jshell
  make gmake cmake ninja meson bazel bazelisk just task rake gulp grunt ant mvn mvnw gradle gradlew sbt scons waf tox nox invoke
  npm npx pnpm pnpx yarn bunx corepack lerna nx turbo vite vitest jest mocha ava playwright cypress eslint tsc webpack rollup
  pip pip3 pipx uv uvx poetry pipenv pdm hatch conda mamba pytest coverage bundle bundler gem rspec composer phpunit
  go cargo rustc rustup cross dotnet swift zig gcc g++ cc c++ clang clang++ ld dune opam stack cabal mix rebar3 flutter dart
  docker docker-compose podman nerdctl kubectl helm terraform tofu ansible ansible-playbook vagrant packer
  gh glab hg svn bzr split install openssl curl wget socat nc ncat psql mysql sqlite3 redis-cli
`);
const VERSIONED = /^(?:python|pypy|perl|ruby|php|lua|node|gcc|g\+\+|clang|clang\+\+)-?[\d.]+$/;

/** Programs that start no other program, whatever their arguments. */
const PLAIN = wordSet(`
  echo printf pwd true false ls cat head tail wc cut tr nl tac rev fold paste comm join uniq basename dirname realpath readlink
  stat which whoami id groups hostname uname uptime arch nproc date cal sleep seq printenv du df free cmp grep egrep fgrep jq tree
  md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum mkdir rmdir touch cp mv rm ln chmod unlink kill ps pgrep
`);
/** Programs that start others only by these options, abbreviated or not. */
const PLAIN_BUT_FOR: Readonly<Record<string, RegExp>> = {
  diff: /^-[^-]*l|^--pag/,
  sort: /^--co/,
  rg: /^-[^-]*z|^--(?:pre|host|search-z)/,
};
/** The git commands that do their own work; others can start programs, or are aliases. */
const GIT = wordSet(`
  status log show diff branch tag rev-parse rev-list ls-files ls-tree cat-file blame describe shortlog merge-base name-rev
  count-objects for-each-ref show-ref reflog cherry add restore checkout switch commit stash reset rm mv clean
`);
/** Options that start programs from the config, or write output to a file. */
const GIT_NOT = /^--(?:ou|ext-?|exe|te|open)/;
const GIT_ALONE = /^(?:--version|version|remote(?: (?:-v|--verbose))?)$/;

/** Whether this call starts only its own program. False if that is not certain. */
export function startsNothingElse([program = "", ...args]: readonly string[]): boolean {
  if (PLAIN.has(program)) return true;
  if (Object.hasOwn(PLAIN_BUT_FOR, program)) return !args.some((arg) => PLAIN_BUT_FOR[program]!.test(arg));
  if (program !== "git") return false;
  if (GIT_ALONE.test(args.join(" "))) return true;
  const rest = args[0] === "--no-pager" ? args.slice(1) : args;
  return GIT.has(rest[0] ?? "") && !rest.some((arg) => GIT_NOT.test(arg));
}

/** Why an allow rule must spell out the arguments of such a command; undefined if the rule is fine. */
export function whyNotOpen(match: string): string | undefined {
  if (match === "*" || isExact(match)) return undefined;
  const [program = ""] = match.slice(0, match.indexOf("*")).split(/\s/, 1);
  const name = program.slice(program.lastIndexOf("/") + 1);
  if (!RUNNERS.has(name) && !VERSIONED.test(name)) return undefined;
  return `leaves the arguments of "${name}" open, which starts whatever these tell it to: write out the whole command without "*", or have it asked about`;
}

/** Why an allow rule can never match: `*` works only for programs that start no other. */
export function whyNeverCounts(match: string): string | undefined {
  if (match === "*" || isExact(match)) return undefined;
  if (/[;|&\n]/.test(match.replace(/"[^"]*"|'[^']*'/g, "")))
    return "each command of a line is looked at by itself, and this names several: write a rule for each";
  const words = match.slice(0, match.indexOf("*")).trimStart().split(/\s+/);
  // The last word continues after the star.
  const [program, ...args] = words.slice(0, -1);
  if (program === undefined) return undefined;
  const isOpen = program === "git" && (args.length === 0 || (args.length === 1 && args[0] === "--no-pager"));
  if (isOpen || startsNothingElse([program, ...args])) return undefined;
  const what = program === "git" && args[0] !== undefined ? `git ${args[0]}` : program;
  return `${JSON.stringify(what.slice(0, 60))} may start other programs, so no rule with "*" counts for it: write out the whole commands`;
}
