/** A point that a script waits at until the test lets it through: order without clocks. */
export interface Gate {
  /** Resolves once the gate is open, for everyone, for ever. */
  readonly opened: Promise<void>;
  open(): void;
}

/** A closed gate. */
export function createGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
