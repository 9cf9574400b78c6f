import type { NodePath, NodePaths } from "../ports/node-paths.ts";

/** What an app fills the port `node-paths` with: the served paths by surface, which the surfaces look into at every request. */
export class NodePathTable implements NodePaths {
  readonly #surfaces = new Map<string, Map<string, NodePath>>();

  serve(served: NodePath): () => void {
    const paths = this.#pathsOf(served.surface);
    if (paths.has(served.path)) throw new Error(`Path ${served.path} of surface "${served.surface}" is served twice`);
    paths.set(served.path, served);
    return () => {
      // A second call must not take the path from whoever serves it by then.
      if (paths.get(served.path) === served) paths.delete(served.path);
    };
  }

  /** The paths of one surface, as they are at any time. */
  of(surface: string): ReadonlyMap<string, NodePath> {
    return this.#pathsOf(surface);
  }

  /** Every surface on which something is or was served. */
  get surfaces(): readonly string[] {
    return [...this.#surfaces.keys()];
  }

  #pathsOf(surface: string): Map<string, NodePath> {
    const known = this.#surfaces.get(surface) ?? new Map<string, NodePath>();
    this.#surfaces.set(surface, known);
    return known;
  }
}
