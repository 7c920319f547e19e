import type { Approval, ApprovalState } from "../../src/protocol/approvals.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Task } from "../../src/protocol/squads.ts";
import type { TestDaemon } from "./daemon.ts";
import { until } from "./until.ts";

export const approvalsOf = async (daemon: TestDaemon, state?: ApprovalState): Promise<Approval[]> =>
  (await daemon.json<{ items: Approval[] }>("GET", `/api/approvals${state ? `?state=${state}` : ""}`)).items;

/** Waits until at least `count` approvals are waiting for a person. Newest first. */
export const asked = (daemon: TestDaemon, count = 1): Promise<Approval[]> =>
  until(`${count} waiting approvals`, async () => {
    const items = await approvalsOf(daemon, "waiting");
    return items.length >= count ? items : undefined;
  });

export const decide = (daemon: TestDaemon, id: string, body: unknown): Promise<Response> =>
  daemon.fetch(`/api/approvals/${id}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });

export const finishedMessage = (daemon: TestDaemon, id: string): Promise<Message> =>
  until(`the end of ${id}`, async () => {
    const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
    return message.finishedAt === null ? undefined : message;
  });

export const finishedTask = (daemon: TestDaemon, id: string): Promise<Task> =>
  until(`the end of ${id}`, async () => {
    const task = await daemon.json<Task>("GET", `/api/tasks/${id}`);
    return task.finishedAt === null ? undefined : task;
  });
