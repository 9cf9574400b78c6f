import { defineContract, maxCharacters, readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";
import { managementEnvelope } from "./envelope.ts";
import { managementErrors } from "./errors.ts";
import { LABEL_LENGTH } from "./limits.ts";

const safeToken = {
  tokenId: v.string(),
  providerId: v.string(),
  label: v.optional(v.string()),
  createdAt: v.string(),
  /** Absent: it has no end. */
  expiresAt: v.optional(v.string()),
};

/** Of a list: when a call came with the token last, at most five minutes old. Absent: it was not used yet. */
const listedToken = { ...safeToken, lastUsedAt: v.optional(v.string()) };

/** Money for a million tokens. */
const price = v.object({
  model: v.string(),
  input: v.number(),
  output: v.number(),
  /** Input that is read from the provider's cache. Absent: it costs as much as `input`. */
  cachedInput: v.optional(v.number()),
  /** Input that is written to the provider's cache. Absent: it costs as much as `input`. */
  cacheWrite: v.optional(v.number()),
});

const provider = v.object({
  id: v.string(),
  type: v.string(),
  protocol: v.picklist(["messages", "chat-completions"]),
  /** Absent if the upstream cannot list them now. */
  models: v.optional(v.array(v.string())),
  /** It accepts `reasoning_content` of earlier answers. Present only for providers of Chat Completions that do. */
  takesReasoning: v.optional(v.literal(true)),
  /** Where it is set: in the configuration, `found` on the machine, or the offline `demo`. Absent if the host does not say it. */
  source: v.optional(v.picklist(["file", "environment", "flag", "options", "found", "demo"])),
  /** The key of the configuration, and the environment variable, that set it. */
  setting: v.optional(v.string()),
  env: v.optional(v.string()),
  /** Where it was found, for people. */
  foundAt: v.optional(v.string()),
  /** The present prices of its models, in `currency`. Absent if the settings have no price for it. */
  prices: v.optional(v.array(price)),
});

/** Providers and safe tokens for the instance's owner, on the agent service (open points 2). */
export const safeTokenContract = defineContract(
  {
    surface: "agent",
    auth: "owner",
    envelope: managementEnvelope,
    faults: { invalid_request: managementErrors.invalid_request },
  },
  {
    providers: {
      method: "GET",
      path: "/api/providers",
      summary: "List the enabled providers with their models and prices",
      query: readParameters({}),
      success: reply.json(
        v.object({
          /** Of all prices. Absent without prices. */
          currency: v.optional(v.string()),
          providers: v.array(provider),
        }),
      ),
      errors: managementErrors,
    },
    list: {
      method: "GET",
      path: "/api/safe-tokens",
      summary: "List safe tokens, without their values",
      query: readParameters({}),
      success: reply.json(v.object({ safeTokens: v.array(v.object(listedToken)) })),
      errors: managementErrors,
    },
    issue: {
      method: "POST",
      path: "/api/safe-tokens",
      summary: "Issue a safe token; only this response contains its value",
      body: v.strictObject({
        providerId: v.pipe(v.string(), v.nonEmpty()),
        label: v.optional(v.pipe(v.string(), maxCharacters(LABEL_LENGTH))),
      }),
      success: reply.json(v.object({ ...safeToken, token: v.string() }), 201),
      errors: managementErrors,
    },
    revoke: {
      method: "DELETE",
      path: "/api/safe-tokens/:tokenId",
      summary: "Revoke one safe token",
      params: v.strictObject({ tokenId: v.string() }),
      success: reply.json(v.object({ revoked: v.number() })),
      errors: managementErrors,
    },
    revokeAll: {
      method: "DELETE",
      path: "/api/safe-tokens",
      summary: "Revoke all safe tokens",
      success: reply.json(v.object({ revoked: v.number() })),
      errors: managementErrors,
    },
  },
);
