import {
  defineContract,
  defineErrors,
  isExistingDay,
  maxCharacters,
  ownerErrors,
  pageEnvelope,
  readParameters,
  reply,
} from "@portico/core/contract";
import * as v from "valibot";

/** Errors of reading the audit. */
export const auditErrors = {
  ...ownerErrors("Only the instance's owner may read the audit"),
  ...defineErrors({ invalid_cursor: { status: 400, message: "after is not next of an earlier page of this query" } }),
};

const text = v.string();
const optionalText = v.optional(text);
/** ISO 8601 with a zone: others would mean the time of the machine. */
const time = v.pipe(v.string(), v.isoTimestamp(), v.check(isExistingDay, "a day that exists"), v.toDate());

const entry = v.object({
  id: text,
  at: text,
  action: text,
  object: optionalText,
  count: v.optional(v.number()),
  outcome: v.picklist(["done", "begun", "failed"]),
  error: optionalText,
  of: optionalText,
  who: v.object({ role: text, userId: optionalText, tokenId: optionalText, address: optionalText }),
});

/** The record of who changed what, for the instance's owner, on the agent service: an extension of the specification. */
export const auditContract = defineContract(
  { surface: "agent", auth: "owner", envelope: pageEnvelope },
  {
    entries: {
      method: "GET",
      path: "/api/audit",
      summary: "Read who changed what, newest first",
      query: readParameters({
        since: v.optional(time),
        until: v.optional(time),
        action: v.optional(v.pipe(v.string(), v.regex(/^[a-z][a-z0-9.-]{0,63}$/))),
        userId: v.optional(v.pipe(v.string(), v.nonEmpty(), maxCharacters(512))),
        /** A part of the object's id. */
        object: v.optional(v.pipe(v.string(), v.nonEmpty(), maxCharacters(512))),
        /** The address of the callers, or the beginning of it. */
        address: v.optional(v.pipe(v.string(), v.nonEmpty(), maxCharacters(64))),
        limit: v.optional(v.pipe(v.string(), v.regex(/^[1-9]\d{0,3}$/), v.transform(Number), v.maxValue(1000)), "100"),
        after: v.optional(v.pipe(v.string(), maxCharacters(2048))),
      }),
      success: reply.json(v.object({ items: v.array(entry), next: optionalText })),
      errors: auditErrors,
    },
  },
);
