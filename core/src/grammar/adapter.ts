import type { Filling, Given, Needs, Port } from "./port.ts";
import type { Scope } from "./scope.ts";

/** What `defineAdapter` takes: the port that the adapter fills, what it needs, and how it opens. */
export interface AdapterSpec<P extends Port<any>, N extends Needs, O> {
  /** Port and technology, as in the file tree: `records/sqlite`. */
  readonly name: string;
  readonly port: P;
  /** Ports this adapter is built on; the app opens their adapters first. */
  readonly needs: N;
  /**
   * Where the adapter keeps its data, if its options say it: an absolute path, or the name of a server without credentials. Commands such as
   * `portico backup` compare it with the data directory. The options are those of `open`.
   */
  place?(options: any): string | undefined;
  /** Open the technology and return the port's interface. `scope.onClose` undoes what it opens. */
  open(given: Given<N>, options: O, scope: Scope): Filling<P> | Promise<Filling<P>>;
}

/** An adapter with its options, ready to be listed in a preset. */
export interface Adapter<P extends Port<any> = Port<any>> {
  readonly name: string;
  readonly spec: AdapterSpec<P, any, any>;
  readonly options: unknown;
  /** Name of the plugin that brings the adapter along; set by the app. */
  readonly broughtBy?: string;
}

/** Declare an adapter; the result is called with its options where a preset installs it. */
export function defineAdapter<P extends Port<any>, const N extends Needs, O = void>(
  spec: AdapterSpec<P, N, O>,
): (options: O) => Adapter<P> {
  const make = (options: O): Adapter<P> => ({ name: spec.name, spec, options });
  // A preset that lists the function itself is refused with this name.
  return Object.defineProperty(make, "name", { value: spec.name });
}
