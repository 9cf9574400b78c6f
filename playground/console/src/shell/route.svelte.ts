import { createSubscriber } from "svelte/reactivity";

/** Where the console stands: `#/agents/helper?tab=chat`. Hashes are never sent, and need nothing of the server. */
export interface Route {
  /** The first segment; `""` is the overview. */
  readonly page: string;
  /** What comes behind it, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const follow = createSubscriber((update) => {
  addEventListener("hashchange", update);
  return () => removeEventListener("hashchange", update);
});

/** The route now; whoever reads it in a template or an effect follows it. */
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

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
