import { defineAdapter, optional, ports } from "@portico/core";
import { openHttpProvider } from "./http/http-provider.ts";
import type { HttpProviderOptions } from "./http-options.ts";

/**
 * A provider that uses the Chat Completions protocol over HTTP, with its key as a bearer token. Its dialect comes from the
 * options, else from its known vendor and models.
 */
export const chatHttp = defineAdapter({
  name: "models/chat-http",
  port: ports.models,
  needs: { clock: ports.clock, telemetry: optional(ports.telemetry) },
  open: (given, options: HttpProviderOptions, scope) =>
    openHttpProvider(
      {
        protocol: "chat-completions",
        callPath: "/chat/completions",
        credentialHeader: (credential) => ({ authorization: `Bearer ${credential}` }),
        defaults: {},
      },
      options,
      given,
      scope,
    ),
});
