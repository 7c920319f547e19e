import { z } from "zod";

/** 0 means for ever. */
const Days = z.number().int().min(0).max(36_500);
/** Counts the newest rows; 0 means all. */
const Rows = z.number().int().min(0);

/** How long records are kept, and how many. Unfinished work and undelivered messages are always kept. */
export const RetentionConfig = z.strictObject({
  messagesDays: Days.default(365).describe("days to keep a finished message with its reply, tool calls and costs; 0 is forever"),
  messages: Rows.default(200_000).describe("how many of the newest messages to keep; 0 is all"),
  eventsDays: Days.default(30).describe("days to keep events for clients that were away"),
  events: Rows.default(20_000).describe("how many of the newest events to keep"),
  toolCallsDays: Days.default(90).describe("days to keep the journal of tool calls"),
  toolCalls: Rows.default(200_000).describe("how many of the newest tool calls to keep"),
  usageDays: Days.default(400).describe(
    "days to keep single model calls after their message or task is gone; daily sums stay forever",
  ),
  activityDays: Days.default(90).describe("days to keep the activity of finished tasks"),
  sessionsDays: Days.default(30).describe(
    "days to keep sessions that were replaced, whose conversation is gone, or whose run ended without being done",
  ),
});
