import { defineAdapter, optional, ports, type Secret } from "@portico/core";
import * as v from "valibot";
import { createSafeTokens } from "./safe-tokens.ts";

/** Options of `credentialTool`. */
export interface CredentialToolOptions {
  /** Whether `raw: true` returns a provider's real key (open points 2). Default: it is refused. */
  readonly allowRawCredentials?: boolean;
  /** The real keys by provider configuration id; needed for `raw` only. */
  readonly credentials?: ProviderCredentials;
}

/** The keys by provider configuration id. A function returns the present ones, if they are rotated. */
export type ProviderCredentials = Readonly<Record<string, Secret>> | (() => Readonly<Record<string, Secret>>);

const TOOL_ID = "ComputeCredential";

/** The description of the tool for models. */
export const credentialDefinition: ports.ToolDefinition = {
  id: TOOL_ID,
  name: TOOL_ID,
  description: "Issues a safe token, with which a program on this machine can call a model provider through the model proxy.",
  inputSchema: {
    type: "object",
    properties: {
      action: { type: "string", enum: ["get"] },
      provider: { type: "string", description: "Provider configuration id; may be left out where there is only one" },
      raw: { type: "boolean", description: "Ask for the provider's real key instead; usually refused" },
    },
    required: ["action"],
    additionalProperties: false,
  },
  riskLevel: "critical",
  requiresConfirmation: true,
  idempotent: false,
};

const credentialArguments = v.strictObject({
  action: v.literal("get"),
  provider: v.optional(v.string()),
  raw: v.optional(v.boolean(), false),
});

/** The tool with which an agent gets a safe token (specification 2.1). Every call issues a new token for one provider. */
export const credentialTool = defineAdapter({
  name: "tools/compute-credential",
  port: ports.tools,
  needs: {
    models: ports.models,
    records: ports.records,
    secrets: ports.secrets,
    clock: ports.clock,
    ids: ports.ids,
    audit: optional(ports.audit),
  },
  open({ models, ...given }, options: CredentialToolOptions): ports.ToolSource {
    const tokens = createSafeTokens(given);
    const { audit } = given;
    const issue = async (providerId: string, caller: ports.ToolCaller): Promise<ports.ToolResult> => {
      const label = caller.agentId === undefined ? undefined : `agent ${caller.agentId}`;
      const { token, tokenId } = await tokens.issue({ providerId, label, by: actorOf(caller) });
      return told({ provider: providerId, tokenId, token: token.reveal() });
    };
    const reveal = async (providerId: string, caller: ports.ToolCaller): Promise<ports.ToolResult> => {
      if (!options.allowRawCredentials)
        return refused("Real credentials are not handed out: this instance does not allow raw credentials");
      const { credentials = {} } = options;
      const credential = (typeof credentials === "function" ? credentials() : credentials)[providerId];
      if (!credential) return refused(`Provider "${providerId}" has no credential`);
      await audit?.record({ action: "provider-credential.reveal", object: providerId, who: actorOf(caller) });
      return told({ provider: providerId, credential: credential.reveal() });
    };
    return {
      id: "compute-credential",
      list: async () => [credentialDefinition],
      async call(call, signal) {
        signal.throwIfAborted();
        if (call.toolId !== TOOL_ID) throw new ports.ToolNotFound(`There is no tool "${call.toolId}" here`);
        const parsed = v.safeParse(credentialArguments, call.arguments);
        if (!parsed.success) {
          throw new ports.ToolArgumentsInvalid(
            parsed.issues.map((issue) => `${v.getDotPath(issue) ?? "(arguments)"}: expected ${issue.expected}`).join("; "),
          );
        }
        const ids = models.map((provider) => provider.id);
        const providerId = parsed.output.provider ?? call.caller.providerId ?? (ids.length === 1 ? ids[0] : undefined);
        if (providerId === undefined || !ids.includes(providerId)) return refused(`Name one of the providers: ${ids.join(", ")}`);
        return parsed.output.raw ? reveal(providerId, call.caller) : issue(providerId, call.caller);
      },
    };
  },
});

/** The agent acts for its user. */
function actorOf({ userId }: ports.ToolCaller): ports.AuditActor {
  return { role: "agent", userId };
}

function told(value: object): ports.ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], isError: false };
}

function refused(why: string): ports.ToolResult {
  return { content: [{ type: "text", text: why }], isError: true };
}
