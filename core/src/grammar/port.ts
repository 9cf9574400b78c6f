/** A typed name for an instance that the app is given. Adapters fill ports; plugins and other adapters request them. */
export interface Port<T> {
  readonly id: string;
  readonly many: boolean;
  /** Whether it is a need made with `later`. */
  readonly isLater?: boolean;
  /** Whether it is a need made with `optional`. */
  readonly isOptional?: boolean;
  /** Type carrier only; never set at run time. */
  readonly "~type"?: T;
}

/** A port that any number of adapters may fill. A request yields all of them, in preset order. */
export interface ManyPort<T> extends Port<readonly T[]> {
  readonly many: true;
  readonly "~one"?: T;
}

/** Declare a port that exactly one adapter fills. `id` names it in messages and must be unique in an app. */
export function definePort<T>(id: string): Port<T> {
  return { id, many: false };
}

/** Declare a port that any number of adapters fill. */
export function defineManyPort<T>(id: string): ManyPort<T> {
  return { id, many: true };
}

/**
 * A need that is resolved late: the given value is a function that returns the port's instance. For ports whose adapters need the
 * requester in turn, or are opened after it. The start fails if no adapter fills a single port that is not `optional`. Calling
 * the function before the port's adapter is open throws.
 */
export function later<T>(port: Port<T>): Port<() => T> {
  const { id, many, isOptional = false } = port;
  return { id, many, isOptional, isLater: true };
}

/**
 * A need that may stay unfilled: undefined is given if no adapter fills the single port. A many-port is an empty list then, and
 * does not need `optional`.
 */
export function optional<T>(port: Port<T>): Port<T | undefined> {
  return { ...port, isOptional: true };
}

/** What one adapter must produce to fill a port. */
export type Filling<P> = P extends ManyPort<infer T> ? T : P extends Port<infer T> ? T : never;

/** The ports that an adapter or a plugin requests, by its own names for them. */
export type Needs = Readonly<Record<string, Port<unknown>>>;

/** The instances for `Needs`, under the same names. */
export type Given<N extends Needs> = { readonly [K in keyof N]: N[K] extends Port<infer T> ? T : never };
