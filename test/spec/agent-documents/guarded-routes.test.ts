import { agentDocuments } from "@portico/operator/agent-documents";
import { guardedRoutes } from "../../harness/guarded-routes.ts";
import { startAgentService } from "../../harness/agent-app.ts";

guardedRoutes({
  contract: agentDocuments({}).spec.contract,
  parameters: { id: "helper" },
  guard: "owner",
  unauthorized: { error: "unauthorized", code: "unauthorized" },
  start: () => startAgentService({ plugins: [agentDocuments({})] }),
});
