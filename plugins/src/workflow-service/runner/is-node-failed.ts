import type { ports } from "@portico/core";

/** By name, so that it works across duplicate copies of the package. */
export function isNodeFailed(thrown: unknown): thrown is ports.NodeFailed {
  return thrown instanceof Error && thrown.name === "NodeFailed" && "code" in thrown;
}
