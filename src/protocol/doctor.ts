import { z } from "zod";

/** One check of the doctor: what it found, and what to do. */
export const Finding = z.object({
  check: z.string(),
  state: z.enum(["ok", "warning", "failed"]),
  found: z.string(),
  remedy: z.string().optional(),
  fixed: z.boolean().optional(),
  /** Whether IO can safely apply the remedy by itself. */
  mendable: z.boolean().optional(),
});
export type Finding = z.infer<typeof Finding>;

export const DoctorReport = z.object({ ok: z.boolean(), items: z.array(Finding) }).meta({ id: "DoctorReport" });
export type DoctorReport = z.infer<typeof DoctorReport>;
