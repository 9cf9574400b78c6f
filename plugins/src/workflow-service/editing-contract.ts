import { defineContract, jsonObject, readParameters, record, reply } from "@portico/core/contract";
import * as v from "valibot";
import { workflowDefinition } from "./contract.ts";
import { workflowEnvelope, workflowErrors } from "./contracts/errors.ts";
import { CASES_BYTES, DEFINITION_BODY_BYTES } from "./contracts/limits.ts";

const text = v.string();
const {
  unauthorized,
  workflow_service_not_initialized,
  workflow_not_found,
  store_unavailable,
  execution_grant_invalid,
  definitions_not_editable,
  definition_changed,
  definition_name_taken,
  definition_invalid,
  precondition_required,
  checks_busy,
  cases_invalid,
  tests_unavailable,
  invalid_request,
} = workflowErrors;
const reading = { unauthorized, workflow_service_not_initialized, store_unavailable };
/** The id of a workflow, and the name of its file without the extension. */
export const WORKFLOW_ID = /^[A-Za-z0-9_-]{1,64}$/;
const byId = v.strictObject({ id: v.pipe(text, v.regex(WORKFLOW_ID, "a workflow's id")) });

const problem = v.object({
  /** A definition with only warnings can be used. */
  severity: v.picklist(["error", "warning"]),
  line: v.number(),
  column: v.number(),
  /** JSONPath of the wrong key or value. */
  path: text,
  message: text,
});

const testedCase = v.object({
  name: text,
  isOk: v.boolean(),
  /** One line for each difference from the expectation. */
  differences: v.array(text),
  /** How the run ended. Absent if it did not end. */
  found: v.optional(
    v.object({
      status: text,
      outputs: v.optional(v.unknown()),
      /** The outputs are too long to be sent. */
      outputsOmitted: v.optional(v.literal(true)),
      error: v.optional(v.object({ code: text, message: text, nodeId: v.optional(text) })),
      nodes: record(text, text),
    }),
  ),
});

/** Calls with which authors edit definitions (open points 14): extensions of the workflow service. */
export const workflowEditingContract = defineContract(
  {
    surface: "workflow",
    auth: "service",
    envelope: workflowEnvelope,
    faults: {
      invalid_request: workflowErrors.invalid_request,
      invalid_json: workflowErrors.invalid_json,
      body_too_large: workflowErrors.body_too_large,
      unsupported_media_type: workflowErrors.unsupported_media_type,
      origin_not_allowed: workflowErrors.origin_not_allowed,
    },
  },
  {
    definitionSchema: {
      method: "GET",
      path: "/api/workflow/schema",
      summary: "Read the JSON Schema of definitions, with the kinds of nodes of this service",
      query: readParameters({}),
      success: reply.json(jsonObject),
      errors: reading,
    },
    definitionText: {
      method: "GET",
      path: "/api/workflow/:id/definition/text",
      summary: "Read the text of a definition, also one with problems",
      query: readParameters({}),
      params: byId,
      success: reply.bytes(),
      errors: { ...reading, workflow_not_found },
    },
    saveDefinition: {
      method: "PUT",
      path: "/api/workflow/:id/definition",
      summary: "Create or replace a definition, with a grant to edit, where `workflow.editable` is on",
      params: byId,
      body: v.strictObject({ text }),
      bodyLimit: DEFINITION_BODY_BYTES,
      success: reply.json(v.object({ workflowId: text, dslPath: text, version: text, etag: text, created: v.boolean() })),
      errors: {
        ...reading,
        ...{ execution_grant_invalid, definitions_not_editable, definition_changed, definition_invalid },
        ...{ definition_name_taken, precondition_required, checks_busy, invalid_request },
      },
    },
    checkDefinition: {
      method: "POST",
      path: "/api/workflow/:id/definition/check",
      summary: "Check a text as the definition of this workflow, without saving it",
      params: byId,
      body: v.strictObject({ text }),
      bodyLimit: DEFINITION_BODY_BYTES,
      success: reply.json(
        v.object({
          /** Whether this service writes definitions. */
          editable: v.boolean(),
          problems: v.array(problem),
          /** Absent if there are errors. */
          definition: v.optional(workflowDefinition),
        }),
      ),
      errors: { ...reading, checks_busy, invalid_request },
    },
    testDefinition: {
      method: "POST",
      path: "/api/workflow/:id/definition/test",
      summary: "Execute cases of a text in memory, with the answers of the cases and a grant to edit",
      params: byId,
      body: v.strictObject({ text, cases: text }),
      bodyLimit: DEFINITION_BODY_BYTES + 2 * CASES_BYTES,
      success: reply.json(v.object({ cases: v.array(testedCase) })),
      errors: {
        ...reading,
        ...{ execution_grant_invalid, definition_invalid, cases_invalid, checks_busy, tests_unavailable, invalid_request },
      },
    },
  },
);
