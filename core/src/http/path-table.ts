/** A path of one surface, as clients spell it. */
interface ServedPath {
  readonly surface: string;
  readonly path: string;
}

/** Fills the ports `node-paths` and `websocket-paths`: served paths by surface. The surfaces look paths up at every request. */
export class PathTable<P extends ServedPath> {
  readonly #surfaces = new Map<string, Map<string, P>>();

  serve(served: P): () => void {
    const paths = this.#pathsOf(served.surface);
    if (paths.has(served.path)) throw new Error(`Path ${served.path} of surface "${served.surface}" is served twice`);
    paths.set(served.path, served);
    return () => {
      // A second call must not remove the path of a later adapter.
      if (paths.get(served.path) === served) paths.delete(served.path);
    };
  }

  /** The current paths of one surface. The map is live. */
  of(surface: string): ReadonlyMap<string, P> {
    return this.#pathsOf(surface);
  }

  /** Every surface that has or had a served path. */
  get surfaces(): readonly string[] {
    return [...this.#surfaces.keys()];
  }

  #pathsOf(surface: string): Map<string, P> {
    const known = this.#surfaces.get(surface) ?? new Map<string, P>();
    this.#surfaces.set(surface, known);
    return known;
  }
}
