import type { Filling, Given, Needs, Port } from "./port.ts";
import type { Scope } from "./scope.ts";

export interface AdapterSpec<P extends Port<any>, N extends Needs, O> {
  /** Port and technology, as in the file tree: `records/sqlite`. */
  readonly name: string;
  readonly port: P;
  /** Ports this adapter is built on; the app opens their adapters first. */
  readonly needs: N;
  /** Open the technology and answer the port's interface. Whatever it opens is undone with `scope.onClose`. */
  open(given: Given<N>, options: O, scope: Scope): Filling<P> | Promise<Filling<P>>;
}

/** An adapter with its options, ready to stand in a preset. */
export interface Adapter<P extends Port<any> = Port<any>> {
  readonly name: string;
  readonly spec: AdapterSpec<P, any, any>;
  readonly options: unknown;
}

/** Declare an adapter; the result is called with its options where a preset installs it. */
export function defineAdapter<P extends Port<any>, const N extends Needs, O = void>(
  spec: AdapterSpec<P, N, O>,
): (options: O) => Adapter<P> {
  return (options) => ({ name: spec.name, spec, options });
}
