import { defineErrors } from "@portico/core/contract";

/** Errors of reading measurements. */
export const measurementsErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  too_many_steps: { status: 400, message: "The answer would have too many steps: ask for less time or longer steps" },
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the instance's owner may read measurements over time" },
});
