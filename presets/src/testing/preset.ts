import { createManualClock, type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { sequenceIds } from "@portico/adapters/ids/sequence";
import { demo } from "@portico/adapters/models/demo";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { definePreset, Secret } from "@portico/core";

export interface TestingOptions {
  /** Time stands still until the test moves it; default: a clock of its own. */
  readonly clock?: ManualClock;
  /** What was logged and measured; default: an own one that nobody reads. */
  readonly telemetry?: MemoryTelemetry;
  /** Default: `owner-token` for the user `owner`. */
  readonly tokens?: readonly TokenHolder[];
}

/**
 * Every port filled from memory, for tests of plugins and adapters of one's own: nothing is written, no time passes, ids count up, and
 * the offline model answers. Extend it with what is tested: `{ name: "mine", extends: testing({ clock }), plugins: [mine({})] }`.
 */
export const testing = definePreset(({ clock, telemetry, tokens }: TestingOptions) => ({
  name: "testing",
  adapters: [
    memoryTelemetry({ telemetry: telemetry ?? createMemoryTelemetry() }),
    manualClock({ clock: clock ?? createManualClock() }),
    sequenceIds(),
    memorySecrets(),
    memoryRecords(),
    tokenIdentity({ tokens: tokens ?? [{ token: new Secret("owner-token"), userId: "owner", role: "owner" }] }),
    demo({}),
  ],
}));
