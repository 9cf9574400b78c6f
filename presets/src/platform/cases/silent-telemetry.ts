import { defineAdapter, ports } from "@portico/core";

/** Telemetry that drops everything. The log of a service is about its own runs, and not about those of cases. */
export const silentTelemetry = defineAdapter({
  name: "telemetry/silent",
  port: ports.telemetry,
  needs: {},
  open: (): ports.Telemetry => ({
    log: { debug() {}, info() {}, warn() {}, error() {} },
    begin: () => ({ note() {}, run: (work) => work(), end() {} }),
    work: () => ({ run: (work) => work(), end() {} }),
    traceparent: () => undefined,
    modelCall() {},
    gauge: () => () => {},
  }),
});
