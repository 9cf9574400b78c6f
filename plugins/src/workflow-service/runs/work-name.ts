import { createHash } from "node:crypto";

/** Names in the engine are at most 512 characters; node ids can be longer inside `map` and `loop`. */
const ID_CHARACTERS = 400;

/** A name for what a node does with the engine, of which there is one in a run: a step, a wait, a signal. */
export function workName(nodeId: string, what: string): string {
  const id = nodeId.length > ID_CHARACTERS ? createHash("sha256").update(nodeId).digest("hex") : nodeId;
  return `${id} ${what}`;
}
