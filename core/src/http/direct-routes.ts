import { addRoute, createRouter, findRoute } from "rou3";
import { DIRECT_KINDS } from "./answer-node.ts";
import type { MatchedPath, PathRoutes } from "./pipeline.ts";

/** What h3's router reads as more than letters. */
const PATTERN = /[:*(){}\\]/;
/** Patterns whose parameters are whole segments. */
const PLAIN_PATTERN = /^(?:\/(?::\w+|[\w.~-]+))+$/;
/** Paths that every reader of URLs takes for what they are: nothing to decode, no segment that is empty, `.` or `..`. */
const PLAIN_PATH = /^(?:\/[\w~!$&'()*+,;=:@-][\w.~!$&'()*+,;=:@-]*)+$/;
/** No query, or one that a reader of URLs leaves as it is. */
const PLAIN_SEARCH = /^(?:\?[\w~!$%&()*+,\-./:;=?@[\\\]^`{|}]+)?$/;
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * The routes of a surface that a Node host answers on its own streams, without the detour over Request and Response. Looked up with h3's own
 * router, so that both ways find the same; a path that the two might read differently is not found here and takes the detour.
 */
export class DirectRoutes {
  readonly #whole = new Map<string, MatchedPath>();
  /** Has every path, also those that are not direct: one of them may go before one with parameters. */
  readonly #router = createRouter<PathRoutes>();
  readonly #routed = new Set<PathRoutes>();
  readonly #withParams = new Set<PathRoutes>();
  #hasEscapes = false;

  /** Tell a path again with each route that it gets: one that is not direct takes all of its path along. */
  add(routes: PathRoutes): void {
    const { path } = routes;
    if (!this.#routed.has(routes)) {
      this.#routed.add(routes);
      addRoute(this.#router, "", path, routes);
      // h3 undoes escapes in a declared path that need not be, and then it is another path than here.
      this.#hasEscapes ||= path.includes("%");
    }
    const isDirect = [...routes.methods.values()].every(({ contract }) => DIRECT_KINDS.includes(contract.success.kind));
    this.#whole.delete(path);
    this.#withParams.delete(routes);
    if (!isDirect) return;
    if (!PATTERN.test(path)) this.#whole.set(path, { routes, params: NO_PARAMS });
    else if (PLAIN_PATTERN.test(path)) this.#withParams.add(routes);
  }

  /** What stands on a path, both parts as they came; `search` is `""` or has its leading `?`. */
  find(path: string, search: string): MatchedPath | undefined {
    if (!PLAIN_SEARCH.test(search)) return undefined;
    const whole = this.#whole.get(path);
    if (whole || this.#withParams.size === 0 || this.#hasEscapes || !PLAIN_PATH.test(path)) return whole;
    const found = findRoute(this.#router, "", path);
    return found && this.#withParams.has(found.data) ? { routes: found.data, params: { ...found.params } } : undefined;
  }
}
