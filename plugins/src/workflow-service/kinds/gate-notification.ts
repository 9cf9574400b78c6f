import { record } from "@portico/core/contract";
import * as v from "valibot";
import { duration } from "../definition/duration.ts";

const scalar = v.union([v.string(), v.number(), v.boolean()]);

/** `notify` of a gate, with its templates filled in. */
export const gateNotification = v.strictObject({
  url: v.pipe(v.string(), v.description("An http or https URL, as `http` nodes take it.")),
  method: v.optional(v.pipe(v.picklist(["POST", "PUT"]), v.description("Default `POST`.")), "POST"),
  headers: v.optional(v.pipe(record(v.string(), scalar), v.description("Headers by name, as `http` nodes take them."))),
  body: v.optional(
    v.pipe(
      v.unknown(),
      v.description("A text is sent unchanged, anything else as JSON. Its expressions can name `gate`. Default: all of `gate`."),
    ),
  ),
});

/** `links` of a gate: whether it has an approval link, and how long the link is valid. */
export const gateLinks = v.union([
  v.boolean(),
  v.strictObject({ expiresAfter: v.optional(duration("How long the link is valid: a duration; default `7d`.")) }),
]);

/** How long links are valid by default. A link never outlives the timeout of its gate. */
const LINK_MS = 7 * 24 * 60 * 60_000;

/** The end of the link of a gate, in milliseconds since 1970; undefined for a gate without links. */
export function linkEnd(
  links: v.InferOutput<typeof gateLinks> | undefined,
  { startedAt, expiresAt = Infinity }: { readonly startedAt: number; readonly expiresAt?: number | undefined },
): number | undefined {
  if (links === undefined || links === false) return undefined;
  const { expiresAfter = LINK_MS } = links === true ? {} : links;
  return Math.min(startedAt + expiresAfter, expiresAt);
}
