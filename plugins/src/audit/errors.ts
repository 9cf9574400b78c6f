import { defineErrors } from "@portico/core/contract";

/** Errors of reading the audit. */
export const auditErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  invalid_cursor: { status: 400, message: "after is not next of an earlier page of this query" },
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the instance's owner may read the audit" },
});
