import type { ServerResponse } from "node:http";

/** How a call fails: before it is carried out, or afterwards, so that the caller does not learn that it was. */
export type Fault =
  | { kind: "cut"; done?: boolean }
  | { kind: "status"; status: 500 | 502; done?: boolean }
  | { kind: "flood"; retryAfter: number }
  | { kind: "slow"; ms: number }
  | { kind: "refuse"; status: number; description: string };

export interface Faults {
  /** Makes the next calls of a method fail (`*`: of any method but getUpdates). */
  next(method: string, fault: Fault, times?: number): void;
  /** Takes the planned fault for a call, if any. */
  due(method: string): Fault | undefined;
  clear(): void;
}

export function createFaults(): Faults {
  let planned: { method: string; fault: Fault; times: number }[] = [];
  return {
    next: (method, fault, times = 1) => void planned.push({ method, fault, times }),
    due(method) {
      const found = planned.find((each) => each.method === method || (each.method === "*" && method !== "getUpdates"));
      if (!found) return undefined;
      found.times -= 1;
      if (found.times <= 0) planned = planned.filter((each) => each !== found);
      return found.fault;
    },
    clear() {
      planned = [];
    },
  };
}

/** Answers like a server in trouble. */
export function failWith(fault: Fault, response: ServerResponse): void {
  if (fault.kind === "cut") return void response.socket?.destroy();
  if (fault.kind === "status" && fault.status === 502) {
    response.writeHead(502, { "content-type": "text/html" });
    return void response.end("<html><body>Bad Gateway</body></html>");
  }
  if (fault.kind === "status") refuse(response, 500, "Internal Server Error");
  else if (fault.kind === "refuse") refuse(response, fault.status, fault.description);
  else if (fault.kind === "flood") {
    const { retryAfter } = fault;
    refuse(response, 429, `Too Many Requests: retry after ${retryAfter}`, { retry_after: retryAfter });
  }
}

export function refuse(response: ServerResponse, code: number, description: string, parameters?: Record<string, unknown>): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(JSON.stringify({ ok: false, error_code: code, description, ...(parameters && { parameters }) }));
}
