import type { ports } from "@portico/core";
import type { OtlpSignal } from "../otlp-options.ts";

/** Whether exports arrive. An episode of failures is logged once at its beginning, and once at its end. */
export class ExportHealth {
  readonly #log: () => ports.Log | undefined;
  readonly #states = new Map<OtlpSignal, boolean>();
  #isFailing = false;

  /** `log` is called when there is something to tell: the log itself is exported, and is created later. */
  constructor(log: () => ports.Log | undefined) {
    this.#log = log;
  }

  succeeded(signal: OtlpSignal): void {
    this.#states.set(signal, true);
    if (!this.#isFailing || [...this.#states.values()].includes(false)) return;
    this.#isFailing = false;
    this.#log()?.info("Telemetry is exported again");
  }

  failed(signal: OtlpSignal, error: unknown): void {
    this.#states.set(signal, false);
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#log()?.warn("Telemetry cannot be exported", { signal }, error);
  }

  /** 1 or 0 for each signal whose export was tried. */
  readonly gauge: ports.Gauge = {
    name: "portico_telemetry_export_up",
    help: "1 if the last export of the signal over OTLP arrived",
    read: () => [...this.#states].map(([signal, isUp]) => ({ labels: { signal }, value: isUp ? 1 : 0 })),
  };
}
