import { auditWriter, callerOf, definePlugin, optional, ownerScheme, ports } from "@portico/core";
import { agentDocumentsConfig } from "./config.ts";
import { agentDocumentsContract } from "./contract.ts";
import { documentHandlers } from "./documents.ts";
import { agentDocumentErrors } from "./errors.ts";

/** `/api/agents/:id/document` on surface `agent`: the texts of the agents, for the instance's owner. */
export const agentDocuments = definePlugin({
  name: "agent-documents",
  summary: "The texts of the agents: read, check, write and remove them.",
  config: agentDocumentsConfig,
  needs: {
    agents: ports.agents,
    engines: ports.agentEngines,
    turns: optional(ports.backgroundTurns),
    identity: ports.identity,
    records: ports.records,
    audit: optional(ports.audit),
  },
  contract: agentDocumentsContract,
  security: { owner: ownerScheme },
  capabilities: () => ["agentDocuments"],
  guards: ({ identity }) => ({
    async owner(head, signal) {
      const caller = await callerOf(head, identity, signal);
      if (!caller) throw agentDocumentErrors.unauthorized();
      if (caller.role !== "owner") throw agentDocumentErrors.owner_required();
      return caller;
    },
  }),
  setup: ({ audit, records, ...given }, { editable }) =>
    documentHandlers({ ...given, editable, audit: auditWriter(audit, records) }),
});
