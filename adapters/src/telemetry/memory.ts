import { type CauseDescription, defineAdapter, describeCause, ports } from "@portico/core";
import { Gauges } from "./gauges.ts";

/** One line of the log. */
export interface MemoryLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: ports.LogFields;
  readonly cause: CauseDescription | undefined;
}

/** One request that ended, with its noted facts. */
export interface MemoryRequest extends Omit<ports.RequestFacts, "error"> {
  readonly id: string;
  readonly callerRequestId: string | undefined;
  readonly area: string;
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly error: string | undefined;
}

/** One ended piece of work. */
export type MemoryWork = ports.WorkBegin & { readonly error: string | undefined };

/** Telemetry that can be read back: log lines, and the requests that ended, in their order. */
export interface MemoryTelemetry extends ports.Telemetry {
  readonly lines: readonly MemoryLine[];
  readonly requests: readonly MemoryRequest[];
  readonly modelCalls: readonly ports.MeasuredModelCall[];
  /** The pieces of work that ended, in their order. */
  readonly works: readonly MemoryWork[];
  /** Read every gauge now: its numbers by name. A gauge without numbers has an empty list. */
  readGauges(): Promise<Readonly<Record<string, readonly ports.GaugeValue[]>>>;
}

/** Options of `memoryTelemetry`. */
export interface MemoryTelemetryOptions {
  /** Also called for every line of the level `error`, with its original cause. */
  readonly onError?: (message: string, fields: ports.LogFields, cause: unknown) => void;
}

/** A telemetry that keeps everything in arrays, for tests that read it. */
export function createMemoryTelemetry({ onError }: MemoryTelemetryOptions = {}): MemoryTelemetry {
  const lines: MemoryLine[] = [];
  const requests: MemoryRequest[] = [];
  const modelCalls: ports.MeasuredModelCall[] = [];
  const works: MemoryWork[] = [];
  const gauges = new Gauges();
  const write = (level: MemoryLine["level"], message: string, fields: ports.LogFields = {}, cause?: unknown) =>
    void lines.push({ level, message, fields: { ...fields }, cause: cause === undefined ? undefined : describeCause(cause) });
  return {
    lines,
    requests,
    modelCalls,
    works,
    log: {
      debug: (message, fields) => write("debug", message, fields),
      info: (message, fields) => write("info", message, fields),
      warn: (message, fields, cause) => write("warn", message, fields, cause),
      error(message, fields, cause) {
        write("error", message, fields, cause);
        onError?.(message, fields ?? {}, cause);
      },
    },
    begin({ id, callerRequestId, area, route, method }) {
      const noted: ports.RequestFacts[] = [];
      let isOver = false;
      return {
        note: (facts) => void noted.push(facts),
        run: (work) => work(),
        end({ status, error }) {
          if (isOver) return;
          isOver = true;
          const facts = factsOf(noted);
          requests.push({ ...facts, id, callerRequestId, area, route, method, status, error: facts.error ?? error });
        },
      };
    },
    work(work) {
      let isOver = false;
      return {
        run: (run) => run(),
        end({ error } = {}) {
          if (!isOver) works.push({ ...work, error });
          isOver = true;
        },
      };
    },
    traceparent: () => undefined,
    modelCall: (call) => void modelCalls.push({ ...call }),
    gauge: (gauge) => gauges.add(gauge),
    readGauges: async () => Object.fromEntries((await gauges.read()).map(({ gauge, values }) => [gauge.name, values])),
  };
}

/** Fills the telemetry port. Pass the result of `createMemoryTelemetry()` to read the recorded data. */
export const memoryTelemetry = defineAdapter({
  name: "telemetry/memory",
  port: ports.telemetry,
  needs: {},
  open: (_given, options: { readonly telemetry?: MemoryTelemetry } | undefined): ports.Telemetry =>
    options?.telemetry ?? createMemoryTelemetry(),
});

const FACTS = [
  ...["provider", "providerType", "model", "converted", "streamed", "operation"],
  ...["inputTokens", "outputTokens", "firstByteMs", "error"],
] as readonly (keyof ports.RequestFacts)[];

/** The known facts of all notes. Later ones win field by field. A record may have getters, which a copy of its own properties would miss. */
function factsOf(noted: readonly ports.RequestFacts[]): ports.RequestFacts {
  const entries = noted.flatMap((facts) => FACTS.map((name) => [name, facts[name]] as const));
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
