import { brokenPage, definitionPage } from "../definition-page.ts";
import { isBound } from "../run-pages.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { isReadable } from "../task-scope.ts";
import { readerOf } from "./reader.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Lists the definitions, each with its last run where the caller may read that. */
export function listWorkflows(services: WorkflowServices): WorkflowHandlers["workflows"] {
  const { catalogue, runs, editor } = services.runtime;
  return async ({ signal }) => {
    const canRead = await readerOf(services, signal);
    const workflows = await Promise.all(
      catalogue.list().map(async ({ id, name, description, creator, graph }) => {
        const last = await runs.last(id).catch(toStoreError);
        return {
          ...{ id, name, description, creator, nodeCount: graph.nodes.size, dslPath: catalogue.pathOf(id) ?? id },
          ...(last && isReadable(last, canRead) && { lastRun: lastRunOf(last) }),
        };
      }),
    );
    return { workflows, broken: catalogue.broken().map(brokenPage), editable: editor.isEditable };
  };
}

/** Shows one definition. */
export function readDefinition({ runtime: { catalogue, editor } }: WorkflowServices): WorkflowHandlers["definition"] {
  return ({ params: { id }, fail }) => {
    const definition = catalogue.find(id);
    if (!definition) throw fail.workflow_not_found();
    return { ...definitionPage(definition, catalogue.pathOf(id) ?? id), editable: editor.isEditable };
  };
}

/** Definitions are files: the calls that wrote them say so. */
export const retiredDefinitions: Pick<WorkflowHandlers, "createDefinition" | "replaceDefinition"> = {
  createDefinition({ fail }) {
    throw fail.definition_endpoint_retired();
  },
  replaceDefinition({ fail }) {
    throw fail.definition_endpoint_retired();
  },
};

function lastRunOf(run: RunRecord) {
  const { runId, status, completedAt, totalDurationMs } = run;
  return { runId, status, taskBoardBound: isBound(run), completedAt, totalDurationMs };
}
