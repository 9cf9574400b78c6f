import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import { createOtlpHttpExportDelegate, httpAgentFactoryFromOptions } from "@opentelemetry/otlp-exporter-base/node-http";
import type { IExporterMetricsHelper, ISerializer } from "@opentelemetry/otlp-transformer";
import type { ExportHealth } from "./export-health.ts";
import { OTLP_DEFAULTS, type OtlpOptions, type OtlpSignal, parsePairs } from "../otlp-options.ts";

/** Requests of one signal that may be open at the same time. Later ones are dropped, so that a slow receiver costs no memory. */
const OPEN_REQUESTS = 4;

/** How items of a signal are written. */
export interface SignalFormat<T, R> {
  readonly serializer: ISerializer<T, R>;
  readonly helper: IExporterMetricsHelper<T>;
}

/** Sends one signal to its address. Results are reported to `health`, and never thrown. */
export class SignalExporter<T, R> extends OTLPExporterBase<T> {
  readonly #signal: OtlpSignal;
  readonly #health: ExportHealth;

  constructor(signal: OtlpSignal, url: string, options: OtlpOptions, health: ExportHealth, format: SignalFormat<T, R>) {
    const headers = {
      ...parsePairs(options.headers?.reveal() ?? ""),
      "content-type": options.protocol === "http/json" ? "application/json" : "application/x-protobuf",
    };
    const request = {
      url,
      headers: async () => headers,
      timeoutMillis: options.timeoutMs ?? OTLP_DEFAULTS.timeoutMs,
      concurrencyLimit: OPEN_REQUESTS,
      compression: options.compression ?? "none",
      agentFactory: httpAgentFactoryFromOptions({ keepAlive: true, ...(options.ca && { ca: options.ca.reveal() }) }),
      userAgent: "portico",
    } as const;
    super(createOtlpHttpExportDelegate(request, format.serializer, `otlp_http_${signal}_exporter`, format.helper, undefined));
    this.#signal = signal;
    this.#health = health;
  }

  override export(items: T, resultCallback: (result: ExportResult) => void): void {
    super.export(items, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#health.succeeded(this.#signal);
      else this.#health.failed(this.#signal, result.error);
      // The SDK would report the failure again, to the handler of errors that the host has installed.
      resultCallback({ code: ExportResultCode.SUCCESS });
    });
  }
}
