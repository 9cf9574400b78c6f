import { withoutEnd } from "@portico/core";

/** A link that is relative to the agent service, as an address to open. `base` is the service's address, which may have a path. */
export function absoluteLink(base: string, link: string): string {
  return withoutEnd(base, "/") + link;
}
