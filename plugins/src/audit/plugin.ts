import { callerOf, definePlugin, ownerScheme, ports } from "@portico/core";
import { auditConfig } from "./config.ts";
import { auditContract } from "./contract.ts";
import { auditErrors } from "./errors.ts";

/** `GET /api/audit` on surface `agent`: the record of who changed what, for the owner. */
export const auditPage = definePlugin({
  name: "audit",
  summary: "Who changed what: tokens, grants, secrets, webhooks and decisions.",
  config: auditConfig,
  needs: { audit: ports.audit, identity: ports.identity },
  contract: auditContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({
    async owner(head, signal) {
      const caller = await callerOf(head, identity, signal);
      if (!caller) throw auditErrors.unauthorized();
      if (caller.role !== "owner") throw auditErrors.owner_required();
      return caller;
    },
  }),
  setup: ({ audit }) => ({
    async entries({ query: { since, until, ...query }, fail }) {
      try {
        const { items, next } = await audit.read({ ...query, since: since?.getTime(), until: until?.getTime() });
        return { items: [...items], ...(next !== undefined && { next }) };
      } catch (error) {
        throw error instanceof ports.AuditCursorInvalid ? fail.invalid_cursor(undefined, undefined, error) : error;
      }
    },
  }),
});
