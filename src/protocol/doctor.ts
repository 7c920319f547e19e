import { z } from "zod";

/** One thing that was looked at, what was found, and what to do about it. */
export const Finding = z.object({
  check: z.string(),
  state: z.enum(["ok", "warning", "failed"]),
  found: z.string(),
  remedy: z.string().optional(),
  fixed: z.boolean().optional(),
  /** IO can do what the remedy says by itself, and nothing can go wrong with it. */
  mendable: z.boolean().optional(),
});
export type Finding = z.infer<typeof Finding>;

export const DoctorReport = z.object({ ok: z.boolean(), items: z.array(Finding) }).meta({ id: "DoctorReport" });
export type DoctorReport = z.infer<typeof DoctorReport>;
