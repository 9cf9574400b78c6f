import { type CauseDescription, defineAdapter, describeCause, ports } from "@portico/core";

export interface MemoryLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: ports.LogFields;
  readonly cause: CauseDescription | undefined;
}

export interface MemoryRequest extends ports.RequestFacts {
  readonly id: string;
  readonly area: string;
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly error: string | undefined;
}

/** Telemetry that can be read back: log lines, and the requests that ended, in their order. */
export interface MemoryTelemetry extends ports.Telemetry {
  readonly lines: readonly MemoryLine[];
  readonly requests: readonly MemoryRequest[];
}

/** A telemetry that keeps everything in arrays, for tests that read what was told. */
export function createMemoryTelemetry(): MemoryTelemetry {
  const lines: MemoryLine[] = [];
  const requests: MemoryRequest[] = [];
  const write = (level: MemoryLine["level"], message: string, fields: ports.LogFields = {}, cause?: unknown) =>
    void lines.push({ level, message, fields: { ...fields }, cause: cause === undefined ? undefined : describeCause(cause) });
  return {
    lines,
    requests,
    log: {
      debug: (message, fields) => write("debug", message, fields),
      info: (message, fields) => write("info", message, fields),
      warn: (message, fields, cause) => write("warn", message, fields, cause),
      error: (message, fields, cause) => write("error", message, fields, cause),
    },
    begin({ id, area, route, method }) {
      let facts: ports.RequestFacts = {};
      let isOver = false;
      return {
        note(more) {
          facts = { ...facts, ...known(more) };
        },
        end({ status, error }) {
          if (isOver) return;
          isOver = true;
          requests.push({ ...facts, id, area, route, method, status, error });
        },
      };
    },
  };
}

/** Fills the telemetry port; give it a `createMemoryTelemetry()` of your own to read what was told. */
export const memoryTelemetry = defineAdapter({
  name: "telemetry/memory",
  port: ports.telemetry,
  needs: {},
  open: (_given, options: { readonly telemetry?: MemoryTelemetry } | undefined): ports.Telemetry =>
    options?.telemetry ?? createMemoryTelemetry(),
});

/** A fact that is noted as undefined is not known; it must not hide one that is. */
function known(facts: ports.RequestFacts): ports.RequestFacts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}
