import { auditActor, auditWriter, callerGuard, definePlugin, instanceScheme, optional, ports } from "@portico/core";
import * as v from "valibot";
import { toolAccountErrors as fail, toolAccountsContract } from "./contract.ts";

type Caller = Pick<ports.Caller, "userId" | "role">;
interface Source {
  readonly id: string;
  readonly authorization: ports.ToolAuthorization;
}

/** `/api/tool-accounts` on surface `agent`: the accounts that sources of tools use, for the caller. */
export const toolAccounts = definePlugin({
  name: "tool-accounts",
  summary: "Accounts that MCP servers use: connect, show and disconnect them.",
  config: v.strictObject({
    /**
     * Origins of the pages to which a person may return. Any other page could catch the code of a person who was given the address of
     * another user. Called for each request.
     */
    origins: v.custom<() => readonly string[]>((value) => typeof value === "function", "a function"),
  }),
  needs: { tools: ports.tools, identity: ports.identity, records: ports.records, audit: optional(ports.audit) },
  contract: toolAccountsContract,
  security: { instance: instanceScheme },
  guards: ({ identity }) => ({ instance: callerGuard(identity, fail) }),
  setup({ tools, records, audit: given }, { origins }) {
    const audit = auditWriter(given, records);
    const sources = tools.flatMap(({ id, authorization }): Source[] => (authorization ? [{ id, authorization }] : []));

    /** The source, and the user whose account it is. */
    const find = (sourceId: string, { userId, role }: Caller) => {
      const source = sources.find(({ id }) => id === sourceId);
      if (!source) throw fail.unknown_source();
      if (source.authorization.per === "user" && userId === undefined) throw fail.user_required();
      if (source.authorization.per === "instance" && role !== "owner") throw fail.owner_required();
      return { ...source, userId: ownerOf(source, userId) };
    };
    return {
      async list({ who }) {
        const own = sources.filter(({ authorization }) => authorization.per === "instance" || who.userId !== undefined);
        const accounts = own.map(async (source) => {
          return shown(source, await source.authorization.status(ownerOf(source, who.userId)));
        });
        return { accounts: await Promise.all(accounts) };
      },
      async connect({ params, body: { redirectUrl }, who, signal }) {
        const { authorization, userId } = find(params.sourceId, who);
        const page = URL.parse(redirectUrl);
        if (!page || page.hash !== "" || page.username || page.password || !origins().includes(page.origin))
          throw fail.redirect_not_allowed();
        const { url, expiresAt } = await translated(() => authorization.begin({ userId, by: byOf(who), redirectUrl }, signal));
        return { url, expiresAt: new Date(expiresAt).toISOString() };
      },
      async finish({ params, body, who, head, signal }) {
        const { userId, ...source } = find(params.sourceId, who);
        const fact = { action: "mcp-server.connect", object: source.id, who: auditActor(who, head) };
        const finish = () => source.authorization.finish({ userId, by: byOf(who), ...body }, signal);
        return shown(source, await translated(() => audit.attempt(fact, finish)));
      },
      async disconnect({ params, who, head, signal }) {
        const { authorization, id, userId } = find(params.sourceId, who);
        const fact = { action: "mcp-server.disconnect", object: id, who: auditActor(who, head) };
        return { disconnected: await audit.attempt(fact, () => authorization.disconnect(userId, signal)) };
      },
    };
  },
});

function ownerOf({ authorization }: Source, userId: string | undefined): string | undefined {
  return authorization.per === "user" ? userId : undefined;
}

/** The state of one caller is not valid for another one, also for an account of the instance. */
function byOf({ userId, role }: Caller): string {
  return userId === undefined ? `role:${role}` : `user:${userId}`;
}

function shown({ id, authorization: { per } }: Source, { state, connectedAt, scope }: ports.ToolGrant) {
  return {
    ...{ sourceId: id, per, state },
    ...(connectedAt !== undefined && { connectedAt: new Date(connectedAt).toISOString() }),
    ...(scope !== undefined && { scope }),
  };
}

const FAULTS = {
  unreachable: fail.authorization_unreachable,
  address_refused: fail.authorization_address_refused,
  unsupported: fail.authorization_unsupported,
  registration_refused: fail.registration_refused,
  state_invalid: fail.state_invalid,
  refused: fail.authorization_refused,
} as const;

async function translated<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw cause instanceof ports.ToolAuthorizationFailed ? FAULTS[cause.code](undefined, {}, cause) : cause;
  }
}
