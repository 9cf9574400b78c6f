/** A typed name for something the app can be given. Adapters fill ports; plugins and other adapters ask for them. */
export interface Port<T> {
  readonly id: string;
  readonly many: boolean;
  /** Type carrier only; never set at run time. */
  readonly "~type"?: T;
}

/** A port that any number of adapters may fill; asking for it yields them all, in preset order. */
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

/** What one adapter must produce to fill a port. */
export type Filling<P> = P extends ManyPort<infer T> ? T : P extends Port<infer T> ? T : never;

/** The ports that an adapter or a plugin asks for, by the names it uses for them. */
export type Needs = Readonly<Record<string, Port<unknown>>>;

/** What arrives for `Needs`: the same names, with the instances. */
export type Given<N extends Needs> = { readonly [K in keyof N]: N[K] extends Port<infer T> ? T : never };
