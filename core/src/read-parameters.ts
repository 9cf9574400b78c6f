import * as v from "valibot";

/**
 * The `query` of a read. A request with a parameter that is not among these is refused as `invalid_request`: a caller would take
 * it for a filter that has an effect. Without entries, the read has no parameters.
 */
export function readParameters<const E extends v.ObjectEntries>(entries: E): v.StrictObjectSchema<E, undefined> {
  return v.strictObject(entries);
}
