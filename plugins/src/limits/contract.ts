import { defineContract, defineErrors, readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";
import { LIMIT_GROUPS, LIMIT_SOURCES, LIMIT_SUBJECTS, LIMIT_UNITS } from "./config.ts";

const text = v.string();

/** Errors of the page of limits. */
export const limitsErrors = defineErrors({
  unauthorized: { status: 401, message: "unauthorized" },
  invalid_request: { status: 400, message: "The request does not match its schema" },
});

const limit = v.object({
  id: text,
  group: v.picklist(LIMIT_GROUPS),
  /** What it limits, in a sentence. */
  about: text,
  /** What it counts for: each of them has this limit. */
  appliesTo: v.picklist(LIMIT_SUBJECTS),
  /** `null`: there is no limit. */
  value: v.nullable(v.number()),
  unit: v.picklist(LIMIT_UNITS),
  /** The key of the configuration that sets it. */
  setting: v.optional(text),
  /** The environment variable that sets it. */
  env: v.optional(text),
  /** What set the present value. `fixed`: no setting changes it. */
  source: v.optional(v.picklist(LIMIT_SOURCES)),
  /** The key of an `agent.json` that sets it for one agent. */
  agentKey: v.optional(text),
});

/** The limits of an instance, for all its callers: an extension of the specification. */
export const limitsContract = defineContract(
  {
    surface: "agent",
    auth: "instance",
    envelope: (error) => ({ error: error.message, code: error.code }),
    faults: { invalid_request: limitsErrors.invalid_request },
  },
  {
    limits: {
      method: "GET",
      path: "/api/limits",
      summary: "List the limits of this instance, and where they are set (an extension)",
      query: readParameters({}),
      success: reply.json(
        v.object({
          /** The currency of limits on money. */
          currency: v.optional(text),
          limits: v.array(limit),
        }),
      ),
      errors: { unauthorized: limitsErrors.unauthorized },
    },
  },
);
