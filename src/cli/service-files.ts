import { usageError } from "../lib/errors.ts";

/** What a service manager should run. */
export interface ServiceSpec {
  /** Distinguishes the services of several homes; empty for the default home. */
  mark: string;
  program: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Where a person keeps variables for it, such as keys. */
  envFile: string;
  logFile: string;
}

export const unitName = (mark: string): string => `io${mark && `-${mark}`}.service`;
export const labelOf = (mark: string): string => `io-orchestrator.daemon${mark && `.${mark}`}`;

/** A unit of systemd's user instance. */
export function systemdUnit({ mark, program, args, env, envFile }: ServiceSpec): string {
  const variables = Object.entries(env).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`);
  return `[Unit]
Description=IO, a daemon that answers, remembers and puts teams to work${mark && ` (${mark})`}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart=${[program, ...args].map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")}
${variables.join("\n")}
# Keys and other variables, one NAME=value a line; the file may be missing.
EnvironmentFile=-${specifiers(plain(envFile))}
Restart=on-failure
RestartSec=2
# A config that is not in order does not get better by trying again.
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec=20

[Install]
WantedBy=default.target
`;
}

/** An agent of launchd. launchd would retry even exit code 2, so it must wait between starts. */
export function launchdAgent({ mark, program, args, env, logFile }: ServiceSpec): string {
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${xml(name)}</key>\n    <string>${xml(plain(value))}</string>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${labelOf(mark)}</string>
  <key>ProgramArguments</key>
  <array>
${[program, ...args].map((word) => `    <string>${xml(plain(word))}</string>`).join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join("\n")}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ProcessType</key>
  <string>Background</string>
  <key>StandardErrorPath</key>
  <string>${xml(plain(logFile))}</string>
</dict>
</plist>
`;
}

/** Quotes a word for systemd. */
function quoted(word: string): string {
  return `"${specifiers(plain(word)).replace(/["\\]/g, "\\$&")}"`;
}

const specifiers = (text: string) => text.replaceAll("%", "%%");

function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what may not be there.
  if (/[\u0000-\u001f\u007f]/.test(text))
    throw usageError(`${JSON.stringify(text)}: a service cannot have control characters in a path.`);
  return text;
}

function xml(text: string): string {
  return text.replace(/[<>&"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
