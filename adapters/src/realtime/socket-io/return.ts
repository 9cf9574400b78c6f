/** The content of a client's CONNECT: its hello, and the fields that Socket.IO's own client adds when it reconnects. */
export interface PresentedReturn {
  readonly hello: unknown;
  /** The value from the previous CONNECT answer. */
  readonly pid?: string | undefined;
  /** The resume point of the last event that it has. Without an event, the resume point where it began. */
  readonly last?: string | undefined;
}

/** Removes the fields that the client adds by itself, so that the rest can be checked with a strict schema. */
export function takeReturn(auth: Readonly<Record<string, unknown>>): PresentedReturn {
  const { pid, offset, ...hello } = auth;
  // That client sends only text. A strict schema refuses other values.
  if (!isTextOrAbsent(pid) || !isTextOrAbsent(offset)) return { hello: auth };
  return { hello, pid, last: offset ?? pid?.slice(pid.indexOf(".") + 1) };
}

/**
 * The `pid` of a client that begins at a resume point. A client with a different `pid` than before knows that it may have missed events.
 */
export function toPid(connectionId: string, resumePoint: string): string {
  return `${connectionId}.${resumePoint}`;
}

/**
 * Adds a `pid` to the answer to CONNECT. A client that has one remembers offsets, and sends both when it reconnects. Socket.IO
 * itself sets it only with its own connection state recovery, which keeps packets for every client and admits clients without
 * `admit`. Its types declare the property private; the test suites with the real client would notice a change.
 */
export function givePid(wire: object, pid: string): void {
  Object.assign(wire, { pid });
}

function isTextOrAbsent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}
