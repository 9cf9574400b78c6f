/** Limits for the clients of one path. */
export interface SocketLimits {
  /** Maximum size of a client's message: one WebSocket message, or the body of one polling request. Default: 128 KiB. */
  readonly maxMessageBytes: number;
  /** A ping is sent after this idle time. Default: 25 s. */
  readonly pingIntervalMs: number;
  /** Timeout of the answer to a ping. The connection then ends. Default: 20 s. */
  readonly pingTimeoutMs: number;
  /** Timeout from a client's first byte until it is admitted, including the decision. Default: 15 s. */
  readonly helloTimeoutMs: number;
  /** Maximum backlog of a client that reads more slowly than the service sends. Its connection is then cut. */
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

/**
 * The given limits over the defaults. Throws a RangeError that names the first limit that is not a whole number of at least 1.
 */
export function readLimits(given: Partial<SocketLimits>): SocketLimits {
  const limits = { ...DEFAULTS, ...given };
  const { backlog, ...others } = limits;
  for (const [name, value] of Object.entries({ ...others, "backlog.events": backlog.events, "backlog.bytes": backlog.bytes })) {
    if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`Realtime limit ${name} is a whole number of at least 1`);
  }
  return limits;
}
