import { definePlugin, ownerGuard, ownerScheme, ports } from "@portico/core";
import * as v from "valibot";
import { auditContract, auditErrors } from "./contract.ts";

/** `GET /api/audit` on surface `agent`: the record of who changed what, for the owner. */
export const auditPage = definePlugin({
  name: "audit",
  summary: "Who changed what: tokens, grants, secrets, webhooks and decisions.",
  config: v.strictObject({}),
  needs: { audit: ports.audit, identity: ports.identity },
  contract: auditContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({ owner: ownerGuard(identity, auditErrors) }),
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
