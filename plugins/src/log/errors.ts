import { defineErrors } from "@portico/core/contract";
import { MOST_READERS } from "./limits.ts";

/** Errors of reading the log. */
export const logErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the instance's owner may read the log" },
  too_many_readers: { status: 429, message: `The log of this process has ${MOST_READERS} readers already` },
});
