import type { ports } from "@portico/core";
import type { ModelMeter } from "../../models/call/model-meter.ts";

/** Records the model calls of a turn for the operators, and in the turn's trace. */
export function turnMeter(
  { telemetry, counted }: { readonly telemetry: ports.Telemetry; readonly counted?: ModelMeter["counted"] },
  context: ports.TurnContext,
): ModelMeter {
  return {
    source: "agent",
    counted,
    telemetry: {
      modelCall({ source, ...call }) {
        telemetry.modelCall({ source, ...call });
        context.modelCalled?.(call);
      },
      traceparent: () => telemetry.traceparent(),
    },
  };
}
