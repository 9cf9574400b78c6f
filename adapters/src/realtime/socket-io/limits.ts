/** What one path allows its clients. */
export interface SocketLimits {
  /** Largest message of a client: one WebSocket message, or the body of one polling request. Default 128 KiB. */
  readonly maxMessageBytes: number;
  /** How long a connection may be silent before it is asked whether it lives. Default 25 s. */
  readonly pingIntervalMs: number;
  /** How long it may take to answer that; then it is over. Default 20 s. */
  readonly pingTimeoutMs: number;
  /** How long a client may take from its first byte until it is admitted, the decision included. Default 15 s. */
  readonly helloTimeoutMs: number;
  /** How much may wait for a client that reads slower than the service sends; then its connection is cut. */
  readonly backlog: {
    /** Default 1,000. */
    readonly events: number;
    /** Default 1 MiB. */
    readonly bytes: number;
  };
}

const DEFAULTS: SocketLimits = {
  maxMessageBytes: 128 * 1024,
  pingIntervalMs: 25_000,
  pingTimeoutMs: 20_000,
  helloTimeoutMs: 15_000,
  backlog: { events: 1_000, bytes: 1024 * 1024 },
};

/** Given limits over the defaults. Throws a RangeError naming the first that is not a whole number of at least 1. */
export function readLimits(given: Partial<SocketLimits>): SocketLimits {
  const limits = { ...DEFAULTS, ...given };
  const { backlog, ...others } = limits;
  for (const [name, value] of Object.entries({ ...others, "backlog.events": backlog.events, "backlog.bytes": backlog.bytes })) {
    if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`Realtime limit ${name} is a whole number of at least 1`);
  }
  return limits;
}
