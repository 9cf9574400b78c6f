import { guardCall, isThenable, reportFailure } from "./guard-call.ts";
import { bus, type Bus } from "../ports/bus.ts";
import { clock, type Clock } from "../ports/clock.ts";
import { documents, type Documents } from "../ports/documents.ts";
import { realtime, type Realtime, type RealtimeService, type Resumption } from "../ports/realtime.ts";
import { type Log, type LogFields, telemetry, type Telemetry } from "../ports/telemetry.ts";
import { webSocketPaths, type WebSocketPaths } from "../ports/websocket-paths.ts";

/**
 * A port as one adapter or plugin gets it. The functions that this part hands to the port are called by timers and events: an error of one of
 * them is logged with the part's name, and ends neither the other calls nor the process. Other ports are given as they are.
 */
export function guardedPort(portId: string, instance: unknown, part: string, log: Log): unknown {
  const failed = (what: string) => (error: unknown) => log.error(`${what} failed`, { area: part }, error);
  switch (portId) {
    case telemetry.id:
      return telemetryOfArea(instance as Telemetry, part);
    case clock.id:
      return guardedClock(instance as Clock, failed("A timer"));
    case bus.id:
      return guardedBus(instance as Bus, failed("A listener of the bus"));
    case documents.id:
      return (instance as readonly Documents[]).map((each) => guardedDocuments(each, failed("A listener for documents")));
    case realtime.id:
      return guardedRealtime(instance as Realtime, failed);
    case webSocketPaths.id:
      return guardedWebSocketPaths(instance as WebSocketPaths, failed("A hook of WebSockets"));
    default:
      return instance;
  }
}

/** Telemetry that never fails: a log, a span or a metric that cannot be written does not fail the work that it describes. */
export function guardedTelemetry(given: Telemetry): Telemetry {
  const reported = new Set<string>();
  /** Once for each part: a log that fails does so with every line. */
  const failed = (what: string) => (error: unknown) => {
    if (reported.has(what)) return;
    reported.add(what);
    reportFailure(`Telemetry failed (${what}). Further failures of this kind are not reported`, error);
  };
  const quietly = (what: string, run: () => unknown) => guardCall(run, failed(what));
  const attempt = <T>(what: string, run: () => T, otherwise: T): T => {
    try {
      return run();
    } catch (error) {
      failed(what)(error);
      return otherwise;
    }
  };
  /** `work` is called once, also if the trace fails before it. */
  const runWithin = <T>(trace: { run<R>(work: () => R): R }, work: () => T): T => {
    let hasBegun = false;
    try {
      return trace.run(() => {
        hasBegun = true;
        return work();
      });
    } catch (error) {
      if (hasBegun) throw error;
      failed("run")(error);
      return work();
    }
  };
  const { log } = given;
  return {
    log: {
      debug: (message, fields) => quietly("log", () => log.debug(message, fields)),
      info: (message, fields) => quietly("log", () => log.info(message, fields)),
      warn: (message, fields, cause) => quietly("log", () => log.warn(message, fields, cause)),
      error: (message, fields, cause) => quietly("log", () => log.error(message, fields, cause)),
    },
    begin(request) {
      const trace = attempt("begin", () => given.begin(request), undefined);
      if (!trace) return UNTRACED;
      return {
        note: (facts) => quietly("note", () => trace.note(facts)),
        run: (work) => runWithin(trace, work),
        end: (outcome) => quietly("end", () => trace.end(outcome)),
      };
    },
    work(begun) {
      const trace = attempt("work", () => given.work(begun), undefined);
      if (!trace) return UNTRACED;
      return {
        run: (work) => runWithin(trace, work),
        ...(trace.content && { content: (read) => quietly("content", () => trace.content!(read)) }),
        end: (outcome) => quietly("end", () => trace.end(outcome)),
      };
    },
    traceparent: () => attempt("traceparent", () => given.traceparent(), undefined),
    modelCall: (call) => quietly("modelCall", () => given.modelCall(call)),
    // The name of a gauge may be taken, which its plugin must know.
    gauge: (gauge) => given.gauge(gauge),
  };
}

const UNTRACED = { note() {}, run: <T>(work: () => T): T => work(), end() {} };

function guardedClock(given: Clock, failed: (error: unknown) => void): Clock {
  return {
    now: () => given.now(),
    after: (ms, run) => given.after(ms, () => guardCall(run, failed)),
    sleep: (ms, signal) => given.sleep(ms, signal),
  };
}

function guardedBus(given: Bus, failed: (error: unknown) => void): Bus {
  return {
    publish: (topic, message, options) => given.publish(topic, message, options),
    subscribe: (topic, listener) =>
      given.subscribe(topic, {
        received: (message) => guardCall(() => listener.received(message), failed),
        missed: () => guardCall(() => listener.missed(), failed),
      }),
  };
}

function guardedDocuments(given: Documents, failed: (error: unknown) => void): Documents {
  return {
    id: given.id,
    ...(given.isShared !== undefined && { isShared: given.isShared }),
    ...(given.isReadOnly !== undefined && { isReadOnly: given.isReadOnly }),
    read: (name) => given.read(name),
    write: (name, text, expected) => given.write(name, text, expected),
    remove: (name, expected) => given.remove(name, expected),
    list: () => given.list(),
    watch: (changed) => given.watch((name) => guardCall(() => changed(name), failed)),
  };
}

function guardedRealtime(given: Realtime, failed: (what: string) => (error: unknown) => void): Realtime {
  const guarded = <W>(service: RealtimeService<W>): RealtimeService<W> => ({
    surface: service.surface,
    path: service.path,
    admit: async (hello, signal) => service.admit(hello, signal),
    ...(service.resume && {
      resume(who: W, last: string | undefined) {
        let resumption: Resumption | undefined;
        guardCall(() => {
          const given = service.resume!(who, last);
          if (!isThenable(given)) resumption = given;
          return given;
        }, failed("The handler resume of realtime connections"));
        return resumption;
      },
    }),
    joined: (socket, resumePoint) =>
      guardCall(() => service.joined(socket, resumePoint), failed("The handler joined of realtime connections")),
    receive: (socket, event, payload) =>
      guardCall(() => service.receive(socket, event, payload), failed("The handler receive of realtime connections")),
    gone: (socket) => guardCall(() => service.gone(socket), failed("The handler gone of realtime connections")),
  });
  return { serve: (service) => given.serve(guarded(service)) };
}

/** `upgrade` decides, so its errors are the host's answer. All other hooks are events. */
const HOOKS = ["open", "message", "ping", "pong", "drain", "close", "error"];

function guardedWebSocketPaths(given: WebSocketPaths, failed: (error: unknown) => void): WebSocketPaths {
  const guarded = (hooks: object): object => {
    const events = HOOKS.flatMap((name) => {
      const hook = (hooks as Readonly<Record<string, unknown>>)[name];
      if (typeof hook !== "function") return [];
      const call = (...args: unknown[]): void => guardCall(() => Reflect.apply(hook, hooks, args) as unknown, failed);
      return [[name, call] as const];
    });
    // Everything else is as it was, also for an object of a class.
    return Object.assign(Object.create(hooks), Object.fromEntries(events)) as object;
  };
  return { serve: ({ surface, path, hooks }) => given.serve({ surface, path, hooks: guarded(hooks) }) };
}

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
