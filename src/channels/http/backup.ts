import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Snapshot, SnapshotOptions } from "../../store/snapshot.ts";
import { answers, body } from "./shapes.ts";

export interface BackupRoutesDeps {
  /** Copies the database into a folder below `scratch`. */
  snapshot: (folder: string, options: SnapshotOptions) => Promise<Snapshot>;
}

const Request = z.strictObject({
  folder: z
    .string()
    .regex(/^backup-\d{1,10}-[0-9a-f]{8}$/)
    .describe("A folder of the data folder's scratch, made by the backup"),
  since: z.iso.datetime().describe("When the files that belong to it began to be copied"),
  cutOff: z.boolean().describe("Whether what ended since then is to count as cut off"),
});

/** The daemon's part of a backup; the command copies the files itself. */
export function backupRoutes(app: OpenAPIHono, { snapshot }: BackupRoutesDeps): void {
  const take = createRoute({
    method: "post",
    path: "/api/backup/snapshot",
    summary: "Copies the database for a backup, in steps, while everything goes on",
    request: { body: body(Request) },
    responses: answers(200, z.object({ isQuiet: z.boolean() })),
  });
  app.openapi(take, async (context) => {
    const { folder, ...options } = context.req.valid("json");
    return context.json(await snapshot(folder, options), 200);
  });
}
