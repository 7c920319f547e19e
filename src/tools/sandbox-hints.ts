import { named } from "../lib/quoted.ts";
import type { ExecResult } from "../process/exec.ts";

/** What programs and the C library print if a file system is read-only, in the most common languages. */
const READ_ONLY =
  /\b(?:EROFS|read-only file ?system|os error 30)\b|Dateisystem ist nur lesbar|en lecture seule|(?:ficheros|archivos) de s[oó]lo lectura|in sola lettura|só de leitura|somente (?:para )?leitura|alleen-lezen|wyłącznie do odczytu|только для чтения|読み込み専用|읽기전용|只读文件系统|唯讀的檔案系統/i;
/** A file cannot be renamed or linked between folders that the sandbox mounts separately. */
const CROSS_DEVICE = /\b(?:EXDEV|cross-device link|os error 18)\b/i;
const STARTS_CONTAINERS = /(?:^|[;&|(\n])[ \t]*(?:sudo )?(?:docker|docker-compose|podman|nerdctl)(?=\s|$)/;
const NO_CONTAINERS = /Cannot connect to (?:the Docker daemon|Podman)|\b(?:docker|podman)\.sock\b/i;
const NOT_SIGNED = /gpg failed to sign the data|gpg: signing failed|failed to write commit object/;

const ASK = "call shell with the same command and outside: true, and a person is asked.";

/** Hints for the model about a command that was, or seems to have been, refused something by the sandbox `project`. */
export function sandboxHint(command: string, { code, output }: Pick<ExecResult, "code" | "output">, place: string): string[] {
  const hasFailed = code !== 0;
  const isReadOnly = READ_ONLY.test(output);
  const where = `commands write in ${named(place, 300)}, in /tmp and in the caches of package managers, and nowhere else`;
  if (isReadOnly && hasFailed) return [`The sandbox refused this: ${where}. Do without it, or ${ASK}`];
  if (NO_CONTAINERS.test(output) || (hasFailed && STARTS_CONTAINERS.test(command)))
    return [`Containers cannot be reached from inside the sandbox: do without them, or ${ASK}`];
  if (hasFailed && NOT_SIGNED.test(output))
    return [`Private keys are hidden in the sandbox, so nothing can be signed there: to sign it, ${ASK}`];
  // A pipe may end well although its beginning failed, and output that mentions such errors need not be one.
  if (isReadOnly || CROSS_DEVICE.test(output))
    return [`The sandbox may have refused a part of this: ${where}. If something is missing, do without it, or ${ASK}`];
  return [];
}
