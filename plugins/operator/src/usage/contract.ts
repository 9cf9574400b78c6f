import {
  accessErrors,
  callFilters,
  defineContract,
  defineErrors,
  isExistingDay,
  maxCharacters,
  modelCallers,
  pageEnvelope,
  readParameters,
  reply,
} from "@portico/core/contract";
import * as v from "valibot";

/** Errors of reading usage. */
export const usageErrors = {
  ...accessErrors,
  ...defineErrors({
    too_many_groups: {
      status: 400,
      message: "The answer would have too many groups: ask for less time, longer steps or fewer fields",
    },
    user_required: { status: 403, message: "A token without a user cannot read usage" },
    not_yours: { status: 403, message: "Members may read only their own usage" },
  }),
};

const FIELDS = ["source", "provider", "model", "userId", "agentId", "workflowId", "tokenId"] as const;

/** ISO 8601 with a zone: others would mean the time of the machine. */
const time = v.pipe(v.string(), v.isoTimestamp(), v.check(isExistingDay, "a day that exists"), v.toDate());
const count = v.number();

const fields = v.pipe(
  v.string(),
  maxCharacters(128),
  v.transform((list) => list.split(",")),
  v.array(v.picklist(FIELDS)),
);

const group = v.object({
  /** ISO 8601. */
  at: v.string(),
  source: v.optional(modelCallers),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
  userId: v.optional(v.string()),
  agentId: v.optional(v.string()),
  workflowId: v.optional(v.string()),
  tokenId: v.optional(v.string()),
  calls: count,
  refused: count,
  failed: count,
  unknown: count,
  inputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  outputTokens: count,
  cost: v.optional(count),
  unpriced: v.optional(count),
});

/** What models were used for, on the agent service: an extension of the specification. */
export const usageContract = defineContract(
  { surface: "agent", auth: "user", envelope: pageEnvelope },
  {
    usage: {
      method: "GET",
      path: "/api/usage",
      summary: "Read how many calls of models were made, and what they used (an extension)",
      query: readParameters({
        since: v.optional(time),
        until: v.optional(time),
        step: v.optional(v.picklist(["minute", "hour", "day"])),
        by: v.optional(fields),
        ...callFilters,
      }),
      success: reply.json(
        v.object({
          since: v.string(),
          until: v.string(),
          /** The currency of `cost`. Absent without prices. */
          currency: v.optional(v.string()),
          groups: v.array(group),
        }),
      ),
      errors: usageErrors,
    },
  },
);
