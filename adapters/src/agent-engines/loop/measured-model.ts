import { ReadableStream } from "node:stream/web";
import type { ports } from "@portico/core";
import { type CountedCalls, toUsageEnd } from "./counted-calls.ts";
import type { LanguageModel, StreamPart } from "./language-model.ts";

/** Where the calls of a model are recorded. */
export interface ModelMeter {
  /** The purpose of the calls. */
  readonly source: "agent" | "workflow" | "plugin";
  readonly telemetry: Pick<ports.Telemetry, "modelCall"> & Partial<Pick<ports.Telemetry, "traceparent">>;
  /** Counts the calls of a subject. Absent: they are not counted. */
  readonly counted?: CountedCalls | undefined;
}

type Finish = Extract<StreamPart, { type: "finish" }>;
type Usage = Finish["usage"];

/** The same model, which records each of its calls once: when its answer has ended, failed, or was abandoned. */
export function measuredModel(model: LanguageModel, provider: ports.ModelProvider, meter: ModelMeter): LanguageModel {
  const begin = async (signal: AbortSignal | undefined) => {
    // Before the call is sent, so that a kill cannot hide it.
    const call = await meter.counted?.begin({ provider: provider.id, model: model.modelId }, signal);
    // Durations use a monotonic clock: a clock that is set back would give negative ones.
    const beganAt = performance.now();
    let isTold = false;
    let firstTokenMs: number | undefined;
    const tell = (usage: Usage | undefined, error?: string) => {
      if (isTold) return;
      isTold = true;
      const durationMs = performance.now() - beganAt;
      const price = call?.end(toUsageEnd(usage, error, { durationMs, firstTokenMs }));
      meter.telemetry.modelCall({
        source: meter.source,
        provider: provider.id,
        providerType: provider.type,
        model: model.modelId,
        durationMs,
        firstTokenMs,
        inputTokens: usage?.inputTokens.total,
        outputTokens: usage?.outputTokens.total,
        ...price,
        error,
      });
    };
    /** Called for each part of a streamed answer. */
    const heard = (part: StreamPart) => {
      if (firstTokenMs === undefined && part.type.endsWith("-delta")) firstTokenMs = performance.now() - beganAt;
    };
    return { tell, heard };
  };
  return {
    specificationVersion: model.specificationVersion,
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    async doGenerate(options) {
      const { tell } = await begin(options.abortSignal);
      try {
        const result = await model.doGenerate(options);
        tell(result.usage);
        return result;
      } catch (error) {
        tell(undefined, codeOf(error, options.abortSignal));
        throw error;
      }
    },
    async doStream(options) {
      const { tell, heard } = await begin(options.abortSignal);
      try {
        const result = await model.doStream(options);
        const stream = watched(result.stream as ReadableStream<StreamPart>, { tell, heard }, options.abortSignal);
        return { ...result, stream: stream as never };
      } catch (error) {
        tell(undefined, codeOf(error, options.abortSignal));
        throw error;
      }
    },
  };
}

function watched(
  parts: ReadableStream<StreamPart>,
  { tell, heard }: { tell(usage: Usage | undefined, error?: string): void; heard(part: StreamPart): void },
  signal: AbortSignal | undefined,
): ReadableStream<StreamPart> {
  const reader = parts.getReader();
  let finished: Finish | undefined;
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            tell(finished?.usage, endingOf(finished));
            controller.close();
            return;
          }
          heard(value);
          if (value.type === "finish") finished = value;
          if (value.type === "error") tell(finished?.usage, signal?.aborted ? "aborted" : "upstream_error");
          controller.enqueue(value);
        } catch (error) {
          tell(finished?.usage, codeOf(error, signal, "upstream_broken"));
          controller.error(error);
        }
      },
      async cancel(reason) {
        tell(finished?.usage, finished === undefined ? "aborted" : endingOf(finished));
        await reader.cancel(reason);
      },
    },
    // No read-ahead, so that backpressure on the provider stays unchanged.
    { highWaterMark: 0 },
  );
}

/** The libraries also finish an answer that the provider ended early, and say so in the reason. */
function endingOf(finished: Finish | undefined): string | undefined {
  if (finished === undefined) return "upstream_broken";
  const { unified, raw } = finished.finishReason as { readonly unified: string; readonly raw: string | undefined };
  if (unified === "interrupted") return "upstream_broken";
  return unified === "error" || raw === "error" ? "upstream_error" : undefined;
}

/** The proxy's codes for the same failures. Messages are left out: they quote callers and providers. */
function codeOf(error: unknown, signal: AbortSignal | undefined, unknown = "upstream_error"): string {
  if (signal?.aborted) return "aborted";
  for (let cause = error, depth = 0; cause instanceof Error && depth < 10; cause = cause.cause, depth += 1) {
    if (cause.name === "ModelTimeout") return "upstream_timeout";
    if (cause.name === "ModelUnreachable") return unknown === "upstream_broken" ? unknown : "upstream_unreachable";
    const { statusCode } = cause as { readonly statusCode?: unknown };
    if (typeof statusCode === "number" && statusCode >= 400) return String(statusCode);
  }
  return unknown;
}
