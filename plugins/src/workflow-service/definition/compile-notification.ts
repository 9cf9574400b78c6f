import type { Names } from "./check-names.ts";
import { type Compiling, compileValue } from "./compile-value.ts";
import type { NodeValue } from "./definition.ts";
import type { Path } from "./definition-problem.ts";

/** The type of the nodes whose `notify` can name `gate`. */
export const GATE = "human_gate";
/** The fields of `gate`. */
const GATE_FIELDS = ["workflowId", "runId", "nodeId", "title", "message", "requestedAt", "expiresAt"];
const LINK_FIELDS = ["link", "linkExpiresAt"];

/** Only the body can name the gate, so that its link is in nothing that is shown or logged, such as the address. */
export function compileNotification(
  { body, ...request }: Readonly<Record<string, unknown>>,
  path: Path,
  { names, links }: { readonly names: Names; readonly links: unknown },
  by: Compiling,
): NodeValue {
  const hasLinks = links !== undefined && links !== false;
  const inBody = { ...names, gate: hasLinks ? [...GATE_FIELDS, ...LINK_FIELDS] : GATE_FIELDS };
  return {
    kind: "notification",
    request: compileValue(request, path, names, by),
    body: body === undefined ? undefined : compileValue(body, [...path, "body"], inBody, by),
  };
}
