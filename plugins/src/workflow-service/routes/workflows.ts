import { isBound } from "./history.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { isReadable } from "../access/task-scope.ts";
import { readerOf, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import type { Definition, Graph, GraphNode } from "../definition/definition.ts";
import type { BrokenDefinition } from "../definition/open-catalogue.ts";

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

/** Maximum problems of a broken definition in lists. `portico workflow check` shows all. */
const PROBLEMS_SHOWN = 3;

/** The public view of a definition: its parameters and its graph. The inputs of nodes are not shown, because they reveal internal details. */
export function definitionPage(definition: Definition, dslPath: string) {
  const { id, name, description, creator, parameters, timeoutMs, concurrency, debounce, graph, search, onFailure } = definition;
  const nodes = [...shownNodes(graph, undefined)];
  const searched = search && { search: { parameters: [...search.parameters], outputs: [...search.outputs] } };
  const limited = concurrency && {
    concurrency: {
      limit: concurrency.limit,
      ...(concurrency.key && { key: concurrency.key.source }),
      overflow: concurrency.overflow,
    },
  };
  const debounced = debounce && {
    debounce: {
      ...{ delayMs: debounce.delayMs, maxWaitMs: debounce.maxWaitMs },
      ...(debounce.key && { key: debounce.key.source }),
    },
  };
  const failing = onFailure && {
    onFailure: { type: onFailure.rules.type, ...(onFailure.name !== undefined && { name: onFailure.name }) },
  };
  const nodeCount = graph.nodes.size;
  return {
    id,
    name,
    description,
    creator,
    nodeCount,
    dslPath,
    parameters,
    timeoutMs,
    ...limited,
    ...debounced,
    ...searched,
    nodes,
    ...failing,
  };
}

function lastRunOf(run: RunRecord) {
  const { runId, status, completedAt, totalDurationMs } = run;
  return { runId, status, taskBoardBound: isBound(run), completedAt, totalDurationMs };
}

/** The public view of a definition that cannot be used. */
function brokenPage({ name, problems }: BrokenDefinition) {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(({ line, column, message }) => ({ line, column, message }));
  return { dslPath: name, problemCount: problems.length, problems: shown };
}

interface ShownNode {
  readonly id: string;
  readonly parent?: string | undefined;
  readonly type: string;
  readonly name?: string | undefined;
  readonly needs: { readonly node: string; readonly case?: string | undefined }[];
  readonly cases?: string[] | undefined;
  readonly conditional: boolean;
  readonly always?: true | undefined;
  readonly onError: "fail" | "continue";
}

/** The nodes of a graph. Each node comes before the nodes inside it. */
function* shownNodes({ nodes }: Graph, parent: string | undefined): Generator<ShownNode, void> {
  const idOf = (id: string) => (parent === undefined ? id : `${parent}.${id}`);
  for (const node of nodes.values()) {
    const { rules, name, needs, cases, condition, isAlways, onError } = node;
    yield {
      id: idOf(node.id),
      parent,
      type: rules.type,
      name,
      needs: needs.map((need) => ({ node: idOf(need.node), case: need.case })),
      cases: cases && [...cases],
      conditional: condition !== undefined,
      ...(isAlways && { always: isAlways }),
      onError,
    };
    for (const inner of graphsOf(node)) yield* shownNodes(inner, idOf(node.id));
  }
}

function graphsOf(node: GraphNode): readonly Graph[] {
  return Object.values(node.with).flatMap((value) => (value.kind === "graph" ? [value.graph] : []));
}
