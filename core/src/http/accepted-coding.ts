import Negotiator from "negotiator";
import type { RequestHead } from "../route.ts";

/**
 * The content coding of an answer, by the caller's `Accept-Encoding` and its order: one of `codings`. Undefined if the answer is sent as it is,
 * which is always possible.
 */
export function acceptedCoding<Coding extends string>(
  head: Pick<RequestHead, "header">,
  codings: readonly Coding[],
): Coding | undefined {
  const accepted = head.header("accept-encoding");
  if (accepted === undefined) return undefined;
  const best = new Negotiator({ headers: { "accept-encoding": accepted } }).encoding([...codings, "identity"]);
  return codings.find((coding) => coding === best);
}
