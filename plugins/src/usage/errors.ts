import { defineErrors } from "@portico/core/contract";

/** Errors of reading usage. */
export const usageErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  too_many_groups: {
    status: 400,
    message: "The answer would have too many groups: ask for less time, longer steps or fewer fields",
  },
  unauthorized: { status: 401, message: "unauthorized" },
  user_required: { status: 403, message: "A token without a user cannot read usage" },
  not_yours: { status: 403, message: "Members may read only their own usage" },
});
