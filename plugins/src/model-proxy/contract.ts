import { defineContract, reply } from "@portico/core/contract";
import * as v from "valibot";
import { proxyEnvelope } from "./envelope.ts";
import { proxyErrors } from "./errors.ts";
import { REQUEST_BYTES } from "./limits.ts";

const modelList = v.object({
  object: v.literal("list"),
  data: v.array(
    v.object({
      id: v.string(),
      object: v.literal("model"),
      /** Unix seconds, made while listing (specification 2.2). */
      created: v.pipe(v.number(), v.integer()),
      /** The provider's type, not its configuration id. */
      owned_by: v.string(),
    }),
  ),
});

/** The schema describes only the members that the proxy reads. Other members belong to the protocol and are forwarded. */
const modelCall = v.looseObject({
  model: v.string(),
  messages: v.array(v.unknown()),
  stream: v.optional(v.nullable(v.boolean())),
});

const call = {
  method: "POST",
  body: modelCall,
  bodyLimit: REQUEST_BYTES,
  success: reply.exchange(["application/json", "text/event-stream"]),
  errors: proxyErrors,
} as const;

/** The model proxy's three paths (specification 4.1). It has no other paths. */
export const modelProxyContract = defineContract(
  {
    surface: "proxy",
    auth: "safe-token",
    envelope: proxyEnvelope,
    faults: { body_too_large: proxyErrors.body_too_large, unsupported_media_type: proxyErrors.unsupported_media_type },
  },
  {
    models: {
      method: "GET",
      path: "/v1/models",
      summary: "List the configured models of every enabled provider",
      success: reply.json(modelList),
      errors: proxyErrors,
    },
    messages: { ...call, path: "/v1/messages", summary: "Call a model in Messages format" },
    chatCompletions: { ...call, path: "/v1/chat/completions", summary: "Call a model in Chat Completions format" },
  },
);
