/**
 * Calls code of an adapter, a plugin or an embedder from a place that awaits no result: an event, a timer, a collection. An error that it throws,
 * and a promise of it that rejects, goes to `failed` and ends this call only. Otherwise it would end the process.
 */
export function guardCall(run: () => unknown, failed: (error: unknown) => void): void {
  try {
    const pending = run();
    if (isThenable(pending)) pending.then(undefined, failed);
  } catch (error) {
    failed(error);
  }
}

/**
 * The same object, whose promises may be dropped: a rejection that its user does not await does not end the process. For objects of functions
 * that are given to code of an adapter.
 */
export function withHandledRejections<T extends object>(given: T): T {
  const functions = Object.entries(given).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value !== "function") return [];
    const call = (...args: unknown[]): unknown => {
      const result: unknown = Reflect.apply(value, given, args);
      if (isThenable(result)) result.then(undefined, () => {});
      return result;
    };
    return [[name, call] as const];
  });
  return { ...given, ...Object.fromEntries(functions) };
}

/** Reports a failure for which there is no log, for example of the log itself. */
export function reportFailure(what: string, error: unknown): void {
  console.error(what, describeCause(error));
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** The parts of an error that a log may hold: its origin, never its message. */
export interface CauseDescription {
  readonly name: string;
  readonly code?: string | number;
  /** Stack frames, the innermost first. */
  readonly at?: readonly string[];
  readonly cause?: CauseDescription;
}

const FRAMES = 12;
const DEPTH = 5;
const IDENTIFIER = /^[\w.$-]{1,64}$/;
/** A line of a V8 stack that names a source position. A line of a message rarely ends like one. */
const FRAME = /^\s+at .{1,300}(?::\d+:\d+\)?|\(<anonymous>\)|\(native\))$/;

/**
 * Name, code and stack frames of an error and of its causes. Messages are left out on purpose, also where the stack repeats them:
 * they quote addresses, tokens and input of callers. Accepts any thrown value and never throws itself.
 */
export function describeCause(cause: unknown, depth: number = DEPTH): CauseDescription {
  if (cause === null || (typeof cause !== "object" && typeof cause !== "function")) return { name: typeof cause };
  const code = read(cause, "code");
  const at = frames(read(cause, "stack"), read(cause, "message"));
  const inner = read(cause, "cause");
  return {
    name: identifier(read(cause, "name")) ?? "Error",
    ...(typeof code === "number" ? { code } : identifier(code) && { code: identifier(code) }),
    ...(at.length > 0 && { at }),
    ...(inner !== undefined && depth > 1 && { cause: describeCause(inner, depth - 1) }),
  };
}

function frames(stack: unknown, message: unknown): string[] {
  if (typeof stack !== "string") return [];
  const quoted = typeof message === "string" && message !== "" ? stack.indexOf(message) : -1;
  const rest = quoted < 0 ? stack : stack.slice(quoted + String(message).length);
  const lines = rest.split("\n").filter((line) => FRAME.test(line));
  return lines.slice(0, FRAMES).map((line) => line.trim().slice("at ".length));
}

function identifier(value: unknown): string | undefined {
  return typeof value === "string" && IDENTIFIER.test(value) ? value : undefined;
}

/** Reads a property of an unknown thrown value. Its getter may throw. */
function read(from: object, key: string): unknown {
  try {
    return (from as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}
