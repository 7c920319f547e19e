import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { DoctorReport } from "../../protocol/doctor.ts";
import { HttpError } from "./errors.ts";
import { answers, body } from "./shapes.ts";

export interface DoctorRoutesDeps {
  doctor: (options?: { fix: true; only: string }) => Promise<DoctorReport>;
}

export function doctorRoutes(app: OpenAPIHono, { doctor }: DoctorRoutesDeps): void {
  const look = createRoute({
    method: "get",
    path: "/api/doctor",
    summary: "Checks everything IO needs",
    responses: answers(200, DoctorReport),
  });
  app.openapi(look, async (context) => context.json(await doctor(), 200));

  const mend = createRoute({
    method: "post",
    path: "/api/doctor/mend",
    summary: "Does what the remedy of a mendable finding says, and looks at that again",
    request: { body: body(z.strictObject({ check: z.string().max(40) })) },
    responses: answers(200, DoctorReport),
  });
  app.openapi(mend, async (context) => {
    const { check } = context.req.valid("json");
    const report = await doctor({ fix: true, only: check });
    if (report.items.length === 0) throw new HttpError(404, "There is no check of this name. GET /api/doctor names them all.");
    return context.json(report, 200);
  });
}
