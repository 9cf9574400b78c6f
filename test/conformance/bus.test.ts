import { createBusHub, memoryBus } from "@portico/adapters/bus/memory";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { expect, it } from "vitest";
import { busConformance } from "./bus.ts";
import { openAdapter } from "./open-adapter.ts";

busConformance("memory", () => {
  const hub = createBusHub();
  return () => ({ adapter: memoryBus({ hub }), others: [memoryTelemetry({ telemetry: createMemoryTelemetry() })] });
});

it("bus/memory logs a listener that throws, and hears no other app without a shared hub", async () => {
  const telemetry = createMemoryTelemetry();
  const open = () => openAdapter(memoryBus({}), [memoryTelemetry({ telemetry })]);
  const [one, other] = [await open(), await open()];
  let calls = 0;
  one.port.subscribe("a", {
    received() {
      calls++;
      throw new Error("This listener fails");
    },
    missed() {},
  });
  other.port.publish("a", 1);
  one.port.publish("a", 1);
  await expect.poll(() => calls).toBe(1);
  expect(telemetry.lines.map(({ level, message }) => [level, message])).toEqual([["error", "A listener of the bus failed"]]);
  await one.close();
  await other.close();
});
