import { modelUsage } from "@portico/core/contract";
import * as v from "valibot";

const text = v.string();
const milliseconds = v.number();

/** One part of a turn. Times are milliseconds, the first since the turn arrived. */
export const traceEntry = v.object({
  /** `wait`: for a person. */
  kind: v.picklist(["admission", "queue", "start", "model", "tool", "wait", "delivery"]),
  /** The model, or the ID of the tool. */
  name: v.optional(text),
  start_ms: milliseconds,
  duration_ms: milliseconds,
  /** Of a model call: until the first part of its answer. */
  first_token_ms: v.optional(milliseconds),
  provider: v.optional(text),
  input_tokens: v.optional(v.number()),
  output_tokens: v.optional(v.number()),
  /** Of a model call, by the price table. */
  cost: v.optional(v.number()),
  currency: v.optional(text),
  /** Of a model call: fields of its request that were left out for this model, with commas between them, as in `x-portico-dropped`. */
  dropped: v.optional(text),
  /** A code, if it failed. */
  error: v.optional(text),
  /** Of a tool's call that waited for a person: how, when (ISO 8601) and by whom it was decided, and whether its arguments were changed. */
  decision: v.optional(v.picklist(["approved", "rejected", "expired", "withdrawn"])),
  decided_at: v.optional(text),
  decided_by: v.optional(text),
  edited: v.optional(v.literal(true)),
});

/** The trace of a turn in short form, as its receipt keeps it. */
export const storedTrace = v.object({
  /** When the turn arrived (ISO 8601). */
  began_at: text,
  /** In OpenTelemetry, if traces are exported. */
  trace_id: v.optional(text),
  entries: v.array(traceEntry),
  /** Of all model calls, also of those that were left out. Absent if the engine reports none. */
  usage: v.optional(modelUsage),
  /** How many entries were left out. */
  left_out: v.optional(v.number()),
});

/** One part of a turn. */
export type TraceEntry = v.InferOutput<typeof traceEntry>;
/** The trace of a turn in short form. */
export type StoredTrace = v.InferOutput<typeof storedTrace>;
