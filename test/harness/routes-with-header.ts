import { toOpenAPI } from "@portico/core/openapi";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";

/** The calls of the workflow service for which the OpenAPI document names a header: `workflows.trigger`. */
export function routesWithHeader(header: string): readonly string[] {
  const security = { service: { type: "apiKey", in: "header", name: "X-Workflow-Service-Token" } } as const;
  const { paths } = toOpenAPI({ title: "t", version: "1" }, { workflows: workflowServiceContract }, { security });
  return Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ parameters = [] }) => parameters.some((each) => each.in === "header" && each.name === header))
    .map(({ operationId }) => operationId!)
    .toSorted();
}
