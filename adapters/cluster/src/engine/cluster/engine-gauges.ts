import type { ports } from "@portico/core";
import type { ClusterEngine } from "./cluster-engine.ts";

/** The numbers by which operators watch one process of a cluster, and the work of all. Kinds of work are few, so they are labels. */
export function engineGauges(engine: Pick<ClusterEngine, "leaseAgeMs" | "fault" | "seats" | "backlog">): readonly ports.Gauge[] {
  let asking: ReturnType<ClusterEngine["backlog"]> | undefined;
  /** Gauges that are read together ask the database once. */
  const backlog = (): ReturnType<ClusterEngine["backlog"]> =>
    (asking ??= engine.backlog().finally(() => {
      asking = undefined;
    }));
  const seats = (count: (of: { readonly taken: number; readonly limit: number }) => number) =>
    engine.seats.map((each) => ({ labels: { kind: each.kind }, value: count(each) }));
  return [
    {
      name: "portico_engine_lease_age_seconds",
      help: "Time since this process renewed its lease. Other processes take its work over when it reaches cluster.leaseMs",
      read: () => engine.leaseAgeMs / 1000,
    },
    {
      name: "portico_engine_ready",
      help: "1 if this process holds its lease and accepts work, otherwise 0",
      read: () => (engine.fault === undefined ? 1 : 0),
    },
    {
      name: "portico_engine_seats",
      help: "Works of a kind that this process executes at most at the same time",
      read: () => seats(({ limit }) => limit),
    },
    {
      name: "portico_engine_executing",
      help: "Works of a kind that this process executes now, without those that wait",
      read: () => seats(({ taken }) => taken),
    },
    {
      name: "portico_engine_waiting",
      help: "Works of a kind that wait for a seat in any process, counted up to 10,000. The same in every process",
      read: async () => (await backlog()).map(({ kind, works }) => ({ labels: { kind }, value: works })),
    },
    {
      name: "portico_engine_waiting_seconds",
      help: "How long the first work of a kind has waited for a seat in any process. The same in every process",
      read: async () => (await backlog()).map(({ kind, seconds }) => ({ labels: { kind }, value: seconds })),
    },
  ];
}
