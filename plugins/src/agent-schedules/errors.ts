import { defineErrors } from "@portico/core/contract";

/** Errors of the calls about schedules. */
export const scheduleErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the owner may see and change schedules" },
  unknown_schedule: { status: 404, message: "There is no such schedule" },
  no_owner: { status: 409, message: "The instance has no owner, for whom a schedule could run" },
});
