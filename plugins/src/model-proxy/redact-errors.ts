import type { ports } from "@portico/core";
import type { ModelEvent } from "./convert/model-events.ts";

/** Removes the provider's credential and address from errors inside an answer, because the upstream wrote them. */
export function redactErrors(
  events: readonly ModelEvent[],
  provider: Pick<ports.ModelProvider, "redact">,
): readonly ModelEvent[] {
  if (events.at(-1)?.type !== "error") return events;
  return events.map((event) =>
    event.type === "error" ? { ...event, error: { ...event.error, message: provider.redact(event.error.message) } } : event,
  );
}
