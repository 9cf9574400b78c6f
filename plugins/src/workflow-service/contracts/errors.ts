import { defineErrors, type Envelope } from "@portico/core/contract";

/** Errors of the workflow service (specification 7.2). The caller receives the message. */
export const workflowErrors = defineErrors({
  id_required: { status: 400, message: "id query parameter is required" },
  run_id_required: { status: 400, message: "runId is required" },
  invalid_request: { status: 400, message: "The request does not match its schema" },
  invalid_json: { status: 400, message: "Invalid JSON" },
  invalid_parameters: { status: 400, message: "The parameters do not match the workflow's schema" },
  idempotency_key_invalid: {
    status: 400,
    message: "The header Idempotency-Key must have 1-256 visible characters, without commas unless it is in quotes",
  },
  invalid_values: { status: 400, message: "The values do not match the gate's form" },
  invalid_callback: { status: 400, message: "The event does not match the schema of the callback" },
  unauthorized: { status: 401, message: "unauthorized" },
  execution_grant_invalid: { status: 403, message: "execution_grant_invalid" },
  definition_path_forbidden: { status: 403, message: "The path is outside the folder of definitions" },
  definitions_not_editable: {
    status: 403,
    message:
      "Definitions of this instance are deployed by administrators: workflow.editable is off, or their store takes no writes",
  },
  task_scope_forbidden: { status: 403, message: "The task scope does not belong to this workflow, or may not be read" },
  origin_not_allowed: { status: 403, message: "origin_not_allowed" },
  workflow_not_found: { status: 404, message: "Workflow not found" },
  run_not_found: { status: 404, message: "Run not found" },
  file_not_found: { status: 404, message: "File not found" },
  unknown_schedule: { status: 404, message: "There is no such schedule" },
  callback_not_found: { status: 404, message: "There is no such callback" },
  callback_used: { status: 409, message: "The callback has taken its event" },
  gate_not_open: { status: 409, message: "The run does not wait at this gate" },
  gate_decided: { status: 409, message: "The gate was decided otherwise" },
  // Open points 15 say 409. The draft of the header suggests 422.
  idempotency_key_reused: { status: 409, message: "The Idempotency-Key was used with another body" },
  workflow_busy: { status: 409, message: "As many runs of this workflow go on as its definition allows at the same time" },
  run_ended: { status: 409, message: "The run has ended" },
  run_not_resumable: { status: 409, message: "The run cannot be resumed" },
  resume_plan_outdated: { status: 409, message: "The definition is not the one that the plan shows: read the plan again" },
  definition_name_taken: {
    status: 409,
    message: "The file with this workflow's name contains another workflow: rename the file",
  },
  schedules_unavailable: { status: 409, message: "This service has no schedules" },
  run_resumed: { status: 409, message: "The run was resumed already: resume the newer run" },
  definition_endpoint_retired: { status: 410, message: "Definitions are deployed by administrators: this endpoint is retired" },
  callback_ended: { status: 410, message: "The callback no longer waits: its time has elapsed, or its run has ended" },
  definition_changed: { status: 412, message: "The definition is not the one that the condition names" },
  body_too_large: { status: 413, message: "Request body too large" },
  unsupported_media_type: { status: 415, message: "Unsupported media type" },
  range_not_satisfiable: { status: 416, message: "The range is not in the file" },
  definition_invalid: { status: 422, message: "The definition has problems" },
  cases_invalid: { status: 422, message: "The cases cannot be executed" },
  precondition_required: { status: 428, message: "The header If-Match, or If-None-Match: *, is required" },
  too_many_readers: { status: 429, message: "This process has as many followers of gates as it serves at the same time" },
  workflow_queue_full: { status: 429, message: "Too many runs of this workflow wait for earlier runs to end: try again later" },
  // The operator who starts the service sets the service token.
  workflow_service_not_initialized: { status: 503, message: "workflow_service_not_initialized" },
  // Another process owns the work. Callers must check for the run before they repeat a trigger.
  workflow_owner_fenced: { status: 503, message: "WORKFLOW_OWNER_FENCED" },
  run_not_reserved: { status: 503, message: "Unable to reserve workflow run" },
  checks_busy: { status: 503, message: "Too many definitions are being checked: try again later" },
  tests_unavailable: { status: 503, message: "This service cannot execute cases" },
  store_unavailable: { status: 503, message: "The service's store is unavailable: try again later" },
});

/** `error` has the specified message (7.2). The code is for programs, and `details` has the problems of fields. */
export const workflowEnvelope: Envelope = ({ code, message, details }) => ({
  error: message,
  code,
  ...(Object.keys(details).length > 0 && { details }),
});
