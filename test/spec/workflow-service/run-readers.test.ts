import { memoryBus } from "@portico/adapters/bus/memory";
import { createManualClock } from "@portico/adapters/clock/manual";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { ports } from "@portico/core";
import { expect, it } from "vitest";
import { RunHints } from "../../../plugins/src/workflow-service/runs/run-hints.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { createGate } from "../../harness/gate.ts";

it.each([
  ["before", 0],
  ["after", 1],
])(
  "the later of two readers of a run goes on, and the earlier one ends, if the later one subscribed %s the earlier one",
  async (_, at) => {
    const { port: bus, close } = await openAdapter(memoryBus({}), [memoryTelemetry({})]);
    const clock = createManualClock();
    const slow = createGate();
    const hints = [new RunHints(bus, clock), new RunHints(subscribedAfter(slow.opened, bus), clock)];
    const taken: string[] = [];
    const read = (of: RunHints, name: string, since: number) =>
      of.read("wrun_1", { at: since, id: name }, () => taken.push(name));
    read(hints[at]!, "later", 2);
    read(hints[1 - at]!, "earlier", 1);
    await Promise.resolve();
    slow.open();
    await expect.poll(() => taken).toContain("earlier");
    expect(taken).not.toContain("later");
    await close();
  },
);

/** A bus whose subscriptions hear nothing until the gate is open. */
function subscribedAfter(opened: Promise<void>, bus: ports.Bus): ports.Bus {
  return {
    ...bus,
    subscribe: (topic, listener) => ({
      active: opened.then(() => bus.subscribe(topic, listener).active),
      close() {},
    }),
  };
}
