import type { Guard } from "@portico/core";
import { workflowErrors } from "./errors.ts";
import type { ServiceAccess } from "./service-access.ts";

const HEADER = "x-workflow-service-token";

/** The service token, and nothing else: it is access to the service, and no authority over anybody's runs (specification 5, rule 5). */
export function serviceGuard(access: ServiceAccess): Guard<true> {
  return (head) => {
    const isAllowed = access.allows(head.header(HEADER) ?? "");
    if (isAllowed === undefined) throw workflowErrors.workflow_service_not_initialized();
    if (!isAllowed) throw workflowErrors.unauthorized();
    return true;
  };
}
