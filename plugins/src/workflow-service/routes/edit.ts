import {
  auditActor,
  checkConditions,
  checkReplacement,
  type Handlers,
  ports,
  type RequestHead,
  ServiceError,
} from "@portico/core";
import { definitionJsonSchema } from "../definition/definition-json-schema.ts";
import type { Definition } from "../definition/definition.ts";
import { definitionPage } from "./workflows.ts";
import type { workflowEditingContract } from "../editing-contract.ts";
import { type CheckedDefinition, ChecksBusy, type DefinitionFile, NameTaken } from "../definition/definition-editor.ts";
import { workflowErrors } from "../contracts/errors.ts";
import type { serviceGuard } from "../access/guards.ts";
import { DEFINITION_BYTES } from "../definition/definition-limits.ts";
import { CASES_BYTES, CASES_MS } from "../contracts/limits.ts";
import { toStoreError, type WorkflowServices } from "./workflow-services.ts";

type EditingHandlers = Handlers<typeof workflowEditingContract, { readonly service: ReturnType<typeof serviceGuard> }>;

/** Shows the JSON Schema that editors use. The kinds of nodes stay the same while the service runs. */
export function readDefinitionSchema({ runtime: { editor } }: WorkflowServices): EditingHandlers["definitionSchema"] {
  let schema: ReturnType<typeof definitionJsonSchema> | undefined;
  return () => (schema ??= definitionJsonSchema(editor.types, { isClosed: true }));
}

/** Shows the text of a definition, also of one with problems, so that authors can mend it. */
export function readDefinitionText({ runtime: { editor } }: WorkflowServices): EditingHandlers["definitionText"] {
  return async ({ params: { id }, head, fail }) => {
    // A document of another workflow is not one of this workflow.
    const file = await editor.find(id).catch((error) => (error instanceof NameTaken ? undefined : toEditingError(error)));
    if (!file) throw fail.workflow_not_found();
    const headers = {
      etag: file.etag,
      "cache-control": "no-cache",
      "content-type": file.name.toLowerCase().endsWith(".json") ? "application/json" : "application/yaml; charset=utf-8",
    };
    const outcome = checkConditions(head, { etag: file.etag });
    if (outcome === "not_modified") return new Response(null, { status: 304, headers });
    if (outcome === "precondition_failed") throw changed(file);
    return new Response(file.text, { headers });
  };
}

/** Writes a definition. The checks of the caller's rights come first, so that other callers learn nothing of the definition. */
export function saveDefinition(services: WorkflowServices): EditingHandlers["saveDefinition"] {
  const { audit, runtime } = services;
  const { editor } = runtime;
  return async ({ params: { id }, body: { text }, head, signal, fail }) => {
    if (!editor.isEditable) throw fail.definitions_not_editable();
    const who = await editorOf(services, id, head);
    const before = await editor.find(id).catch(toEditingError);
    assertCondition(head, before);
    const { hash: version } = usable(await editor.check(id, text, signal).catch(toEditingError));
    if (before?.text === text) return savedPage(id, before, { version, created: false });
    const save = () => editor.write(id, text, before);
    const fact = { action: before ? "workflow-definition.replace" : "workflow-definition.create", object: id, who };
    try {
      const written = await (audit?.attempt(fact, save) ?? save());
      return savedPage(id, written, { version, created: before === undefined });
    } catch (error) {
      if (!(error instanceof ports.DocumentConflict)) return toEditingError(error);
      throw changed(await editor.find(id).catch(toEditingError), error);
    }
  };
}

/** Checks a text for its author, while it is written. */
export function checkDefinition({ runtime: { editor, catalogue } }: WorkflowServices): EditingHandlers["checkDefinition"] {
  return async ({ params: { id }, body: { text }, signal }) => {
    const { definition, problems } = await editor.check(id, text, signal).catch(toEditingError);
    return {
      editable: editor.isEditable,
      problems: [...problems],
      ...(definition && { definition: definitionPage(definition, catalogue.pathOf(id) ?? `${id}.yaml`) }),
    };
  };
}

/** Executes cases of a text, one call at a time. */
export function testDefinition(services: WorkflowServices): EditingHandlers["testDefinition"] {
  const { runtime, tests, closing } = services;
  const { editor } = runtime;
  let isBusy = false;
  return async ({ params: { id }, body: { text, cases }, head, signal, fail }) => {
    if (!tests) throw fail.tests_unavailable();
    await editorOf(services, id, head);
    const problems = [
      ...(Buffer.byteLength(text) > DEFINITION_BYTES ? [`A definition has at most ${DEFINITION_BYTES} bytes`] : []),
      ...(Buffer.byteLength(cases) > CASES_BYTES ? [`The cases have at most ${CASES_BYTES} bytes`] : []),
    ];
    if (problems.length > 0) throw fail.cases_invalid(undefined, { problems });
    if (isBusy) throw busy();
    isBusy = true;
    try {
      const given = { workflowId: id, text, cases, types: editor.types, secretNames: editor.secretNames, limitMs: CASES_MS };
      const result = await tests.run(given, AbortSignal.any([signal, closing]));
      if ("problems" in result) throw fail.cases_invalid(undefined, { problems: [...result.problems] });
      return { cases: result.cases.map((each) => ({ ...each, differences: [...each.differences] })) };
    } finally {
      isBusy = false;
    }
  };
}

const GRANT_HEADER = "x-execution-grant";

/** The holder of a grant to edit this workflow. */
async function editorOf({ grants, clock }: WorkflowServices, id: string, head: RequestHead): Promise<ports.AuditActor> {
  const presented = head.header(GRANT_HEADER);
  const grant = presented === undefined ? undefined : await grants.readEditing(presented).catch(toStoreError);
  if (!grant || grant.workflowId !== id || grant.expiresAt <= clock.now()) throw workflowErrors.execution_grant_invalid();
  return auditActor({ role: "grant", userId: grant.userId, tokenId: grant.grantId }, head);
}

/** Throws unless the request names the state that it replaces. */
function assertCondition(head: RequestHead, file: DefinitionFile | undefined): void {
  const outcome = checkReplacement(head, file?.etag);
  if (outcome === "precondition_required") throw workflowErrors.precondition_required();
  if (outcome === "precondition_failed") throw changed(file);
}

function usable({ definition, problems }: CheckedDefinition): Definition {
  if (!definition) throw workflowErrors.definition_invalid(undefined, { problems });
  return definition;
}

function changed(file: DefinitionFile | undefined, cause?: unknown): ServiceError {
  return new ServiceError(workflowErrors.definition_changed, { ...(file && { headers: { etag: file.etag } }), cause });
}

function busy(cause?: unknown): ServiceError {
  return new ServiceError(workflowErrors.checks_busy, { headers: { "retry-after": "1" }, cause });
}

function savedPage(
  workflowId: string,
  { name, etag }: DefinitionFile,
  saved: { readonly version: string; readonly created: boolean },
) {
  return { workflowId, dslPath: name, etag, ...saved };
}

function toEditingError(error: unknown): never {
  if (error instanceof ChecksBusy) throw busy(error);
  if (error instanceof NameTaken) throw workflowErrors.definition_name_taken(undefined, undefined, error);
  if (error instanceof ports.DocumentsUnavailable) throw workflowErrors.store_unavailable(undefined, undefined, error);
  return toStoreError(error);
}
