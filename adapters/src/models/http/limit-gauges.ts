import type { ports, Scope } from "@portico/core";
import type { CallQueue } from "./call-queue.ts";
import type { KeyPool } from "./key-pool.ts";

/** Where the limits of a provider tell their state. */
export interface LimitMeter {
  readonly clock: ports.Clock;
  readonly telemetry: Pick<ports.Telemetry, "log" | "gauge">;
  readonly scope: Scope;
}

/** Tells how many keys of a provider are ready, and how many rest and why. */
export function measureKeys(provider: string, pool: KeyPool, { clock, telemetry, scope }: LimitMeter): void {
  const read = () => {
    const { size, refused, limited } = pool.count(clock.now());
    const states = { ready: size - refused - limited, refused, limited };
    return Object.entries(states).map(([state, value]) => ({ labels: { provider, state }, value }));
  };
  const help =
    "Keys of a provider in this process: those that are ready, and those that rest after the upstream refused or limited them";
  scope.onClose(telemetry.gauge({ name: "portico_provider_keys", help, read }));
}

/** Tells how many calls of a provider run, and how many wait. */
export function measureCalls(provider: string, queue: CallQueue, { telemetry, scope }: LimitMeter): void {
  const read = () => [
    { labels: { provider, state: "running" }, value: queue.running },
    { labels: { provider, state: "waiting" }, value: queue.waiting },
  ];
  const help = "Calls of a provider with a limit, in this process: those that run, and those that wait for a place";
  scope.onClose(telemetry.gauge({ name: "portico_provider_calls", help, read }));
}

/** Tells how many calls of a provider were sent again. */
export function measureRetries(provider: string, count: () => number, { telemetry, scope }: LimitMeter): void {
  const help = "How often this process has sent a failed call of a provider again, since its start";
  const read = () => [{ labels: { provider }, value: count() }];
  scope.onClose(telemetry.gauge({ name: "portico_provider_retries", help, isCount: true, read }));
}
