import { echoAgentEngine } from "@portico/adapters/agent-engines/echo";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { memoryBackgroundTurns } from "@portico/adapters/background-turns/memory";
import { createManualClock, type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { sequenceIds } from "@portico/adapters/ids/sequence";
import { memoryLog } from "@portico/adapters/log/memory";
import { demo } from "@portico/adapters/models/demo";
import { type Loopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { definePreset, Secret } from "@portico/core";

export interface TestingOptions {
  /** Time stands still until the test moves it; default: a clock of its own. */
  readonly clock?: ManualClock;
  /** What was logged and measured; default: an own one that nobody reads. */
  readonly telemetry?: MemoryTelemetry;
  /** Default: `owner-token` for the user `owner`. */
  readonly tokens?: readonly TokenHolder[];
  /** By id, what stands in each `agent.json`; default: one `echo`, which says back what it is told. */
  readonly agents?: ReadonlyMap<string, object | string | null>;
  /** The clients' side of the realtime port; default: an own one, to which nobody connects. */
  readonly loopback?: Loopback;
}

/**
 * Every port filled from memory, for tests of plugins and adapters of one's own: nothing is written, no time passes, ids count up, and
 * the offline model answers. Extend it with what is tested: `{ name: "mine", extends: testing({ clock }), plugins: [mine({})] }`.
 */
export const testing = definePreset(({ clock, telemetry, tokens, agents, loopback }: TestingOptions) => ({
  name: "testing",
  adapters: [
    memoryTelemetry({ telemetry: telemetry ?? createMemoryTelemetry() }),
    manualClock({ clock: clock ?? createManualClock() }),
    sequenceIds(),
    memorySecrets(),
    memoryRecords(),
    tokenIdentity({ tokens: tokens ?? [{ token: new Secret("owner-token"), userId: "owner", role: "owner" }] }),
    demo({}),
    memoryLog(undefined),
    memoryBlobs(undefined),
    hmacSigning({ key: new Secret("a key for tests") }),
    memoryEngine({}),
    memoryDocuments({ id: "documents" }),
    loopbackRealtime(loopback ? { loopback } : {}),
    memoryAgents({ agents: agents ?? new Map([["echo", { name: "Echo", engine: "echo" }]]) }),
    echoAgentEngine({}),
    memoryBackgroundTurns({}),
  ],
}));
