import { echoAgentEngine } from "@portico/adapters/agent-engines/echo";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { recordAudit } from "@portico/adapters/audit/records";
import { memoryBackgroundTurns } from "@portico/adapters/background-turns/memory";
import { memoryBus } from "@portico/adapters/bus/memory";
import { createManualClock, type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { sequenceIds } from "@portico/adapters/ids/sequence";
import { memoryLog } from "@portico/adapters/log/memory";
import { demo } from "@portico/adapters/models/demo";
import { memoryPresence } from "@portico/adapters/presence/memory";
import { type Loopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { memoryRecords } from "@portico/adapters/records/memory";
import { aesGcmSealing } from "@portico/adapters/sealing/aes-gcm";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { recordUsage } from "@portico/adapters/usage/records";
import { definePreset, type ports, Secret } from "@portico/core";

/** Options of `testing`. */
export interface TestingOptions {
  /** Time stops until the test advances it. Default: a new test clock. */
  readonly clock?: ManualClock;
  /** Collects logs and metrics. Default: a new collector that is not read; failures are printed with their causes. */
  readonly telemetry?: MemoryTelemetry;
  /** Default: `owner-token` for the user `owner`. */
  readonly tokens?: readonly TokenHolder[];
  /** The content of each `agent.json`, by agent id. Default: one agent `echo`, which repeats its input. */
  readonly agents?: ReadonlyMap<string, object | string | null>;
  /** The clients' side of the realtime port. Default: a new one without connections. */
  readonly loopback?: Loopback;
}

/**
 * Fills every port with in-memory adapters, for tests of custom plugins and adapters. Nothing is written, time does not advance, ids count up, and
 * the offline model answers. Extend it with the tested plugins: `{ name: "mine", extends: testing({ clock }), plugins: [mine({})] }`.
 */
export const testing = definePreset(({ clock, telemetry, tokens, agents, loopback }: TestingOptions) => ({
  name: "testing",
  adapters: [
    memoryTelemetry({ telemetry: telemetry ?? createMemoryTelemetry({ onError: printFailure }) }),
    manualClock({ clock: clock ?? createManualClock() }),
    sequenceIds(),
    memorySecrets(),
    memoryRecords(),
    recordAudit({}),
    recordUsage({}),
    tokenIdentity({ tokens: tokens ?? [{ token: new Secret("owner-token"), userId: "owner", role: "owner" }] }),
    demo({}),
    memoryLog(undefined),
    memoryBlobs(undefined),
    hmacSigning({ key: new Secret("a key for tests") }),
    aesGcmSealing({}),
    memoryEngine({}),
    memoryDocuments({ id: "documents" }),
    loopbackRealtime(loopback ? { loopback } : {}),
    memoryAgents({ agents: agents ?? new Map([["echo", { name: "Echo", engine: "echo" }]]) }),
    echoAgentEngine({}),
    memoryBackgroundTurns({}),
    memoryBus({}),
    memoryPresence({}),
  ],
}));

/** Includes the full cause: tests should show errors, and their errors contain no user's data. */
function printFailure(message: string, fields: ports.LogFields, cause: unknown): void {
  console.error(...[message, fields, cause].filter((part) => part !== undefined));
}
