import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { telemetryConformance } from "./telemetry.ts";

telemetryConformance("memory", () => {
  const telemetry = createMemoryTelemetry();
  return {
    adapter: memoryTelemetry({ telemetry }),
    // Lines and requests are kept apart; the law looks at the order within each.
    told: () => [...telemetry.lines, ...telemetry.requests].map((each) => JSON.stringify(each)).join("\n"),
  };
});

for (const format of ["json", "text"] as const) {
  telemetryConformance(`opentelemetry, ${format}`, () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    return { adapter: openTelemetry({ format, destination }), told: () => lines.join("") };
  });
}
