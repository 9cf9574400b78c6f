import type { Log, LogFields, Telemetry } from "./ports/telemetry.ts";

/** The same telemetry for one plugin or adapter: its log lines have the field `area` with its name. */
export function telemetryOfArea(telemetry: Telemetry, area: string): Telemetry {
  const { log } = telemetry;
  const named = (fields: LogFields | undefined): LogFields => ({ area, ...fields });
  const ownLog: Log = {
    debug: (message, fields) => log.debug(message, named(fields)),
    info: (message, fields) => log.info(message, named(fields)),
    warn: (message, fields, cause) => log.warn(message, named(fields), cause),
    error: (message, fields, cause) => log.error(message, named(fields), cause),
  };
  return {
    log: ownLog,
    begin: (request) => telemetry.begin(request),
    work: (work) => telemetry.work(work),
    traceparent: () => telemetry.traceparent(),
    modelCall: (call) => telemetry.modelCall(call),
    gauge: (gauge) => telemetry.gauge(gauge),
  };
}
