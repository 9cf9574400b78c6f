import { ports } from "@portico/core";
import type { NodePlay } from "../play-attempts.ts";
import type { NodeResult } from "../play-node.ts";

/** Fails in the author's words. */
export async function playFail({ inputs }: NodePlay): Promise<NodeResult> {
  throw new ports.NodeFailed("failed", String(inputs["message"] ?? "failed"), { retryable: false });
}
