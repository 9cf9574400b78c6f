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
