import { type Access, defineAccess, type Guard } from "@portico/core";
import type { SecurityScheme } from "@portico/core/openapi";
import { workflowErrors } from "../contracts/errors.ts";
import { serviceAccess, type ServiceAccess } from "./service-access.ts";

const HEADER = "x-workflow-service-token";

/** The headers with the service token, for API documents. */
export const serviceScheme: SecurityScheme = {
  type: "apiKey",
  in: "header",
  name: "X-Workflow-Service-Token",
  description: "The workflow service's token",
};

/** Callers with the service token, for pages on the surface of the workflow service. */
export const workflowAccess: Access<{ readonly access: typeof serviceAccess }> = defineAccess({
  auth: "service",
  needs: { access: serviceAccess },
  guard: ({ access }) => serviceGuard(access),
  security: serviceScheme,
});

/** Checks only the service token. It gives access to the service, but no rights over runs (specification 5, rule 5). */
export function serviceGuard(access: ServiceAccess): Guard<Promise<true>> {
  return async (head) => {
    const isAllowed = await access.allows(head.header(HEADER) ?? "");
    if (isAllowed === undefined) throw workflowErrors.workflow_service_not_initialized();
    if (!isAllowed) throw workflowErrors.unauthorized();
    return true;
  };
}
