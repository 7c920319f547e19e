import type { ClusterFiles } from "./materials.ts";
import type { ServerUser } from "./rights.ts";

export interface ServerFileDeps {
  files: ClusterFiles;
  listen: string;
  port: number;
  logFile: string;
  users: readonly ServerUser[];
}

const LOG_BYTES = 5_000_000;
/** The most bytes that may wait for one connection; blobs travel in pieces of 512 KiB. */
const MAX_PENDING = 64_000_000;

/** The server's configuration file: NATS also reads JSON. */
export function serverFile({ files, listen, port, logFile, users }: ServerFileDeps): string {
  const host = listen.includes(":") ? `[${listen}]` : listen;
  const document = {
    server_name: "io",
    listen: `${host}:${port}`,
    pid_file: files.pid,
    log_file: logFile,
    logfile_size_limit: LOG_BYTES,
    max_payload: 1_048_576,
    max_pending: MAX_PENDING,
    tls: { cert_file: files.certificate, key_file: files.key, timeout: 5 },
    authorization: { timeout: 5, users },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
