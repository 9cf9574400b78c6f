import { createSubscriber } from "svelte/reactivity";

/** The route of the console: `#/agents/helper?tab=chat`. Browsers never send hashes, so the server needs no routes. */
export interface Route {
  /** The first segment; `""` is the overview. */
  readonly page: string;
  /** The following segments, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const follow = createSubscriber((update) => {
  addEventListener("hashchange", update);
  return () => removeEventListener("hashchange", update);
});

/** The current route. Templates and effects that read it are updated. */
export function currentRoute(): Route {
  follow();
  const [path = "", query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").map(decoded);
  return { page, path: rest.filter((segment) => segment !== ""), query: new URLSearchParams(query) };
}

/** An address within the console, for `href`. */
export function routeTo(page: string, ...path: readonly string[]): string {
  return `#/${[page, ...path].map(encodeURIComponent).join("/")}`;
}

/** Shows another address in place of the current one, without a step in the browser's history. */
export function replaceRoute(address: string): void {
  history.replaceState(history.state, "", address);
  // `replaceState` tells no listener that the route has changed.
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
