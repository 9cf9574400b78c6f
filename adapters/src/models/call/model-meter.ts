import type { ports } from "@portico/core";
import { mergeUsage, type ModelEvent, type Usage } from "@portico/core/model-protocols";
import { type CountedCalls, inputTokensOf, toUsageEnd } from "./counted-calls.ts";

/** Where the calls of a model are recorded. */
export interface ModelMeter {
  /** The purpose of the calls. */
  readonly source: "agent" | "workflow" | "plugin";
  readonly telemetry: Pick<ports.Telemetry, "modelCall"> & Partial<Pick<ports.Telemetry, "traceparent">>;
  /** Counts the calls of a subject. Absent: they are not counted. */
  readonly counted?: CountedCalls | undefined;
}

const CONTENT: ReadonlySet<ModelEvent["type"]> = new Set(["text", "refusal", "thinking", "tool-arguments"]);

/**
 * Records one call of a model, once: when its answer has ended, failed, or was abandoned. Resolves before the call is sent, so that a kill
 * cannot hide it.
 */
export async function beginMeasured(
  { id: provider, type: providerType }: Pick<ports.ModelProvider, "id" | "type">,
  model: string,
  meter: ModelMeter,
  signal: AbortSignal,
) {
  const call = await meter.counted?.begin({ provider, model }, signal);
  // Durations use a monotonic clock: a clock that is set back would give negative ones.
  const beganAt = performance.now();
  let isTold = false;
  let usage: Usage | undefined;
  let firstTokenMs: number | undefined;
  const dropped = new Set<string>();
  return {
    /** Fields of the request that were left out. */
    dropped(fields: readonly string[]): void {
      for (const field of fields) dropped.add(field);
    },
    /** Called for the events of an answer that is read while it arrives. */
    heard(events: readonly ModelEvent[], isStream: boolean): void {
      for (const event of events) {
        if (event.type === "usage" || event.type === "start") usage = mergeUsage(usage, event.usage);
        if (isStream && firstTokenMs === undefined && CONTENT.has(event.type)) firstTokenMs = performance.now() - beganAt;
      }
    },
    /** `error` is the code of a failure. */
    ended(error?: string): void {
      if (isTold) return;
      isTold = true;
      const durationMs = performance.now() - beganAt;
      const price = call?.end(toUsageEnd(usage, error, { durationMs, firstTokenMs }));
      meter.telemetry.modelCall({
        source: meter.source,
        provider,
        providerType,
        model,
        durationMs,
        firstTokenMs,
        inputTokens: inputTokensOf(usage),
        outputTokens: usage?.output,
        ...price,
        ...(dropped.size > 0 && { dropped: [...dropped] }),
        error,
      });
    },
  };
}
