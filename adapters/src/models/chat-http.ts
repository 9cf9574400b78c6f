import { defineAdapter, ports } from "@portico/core";
import { openHttpProvider } from "./http/http-provider.ts";
import type { HttpProviderOptions } from "./http/provider-options.ts";

/** A provider that speaks the Chat Completions protocol over HTTP, and wants its key as a bearer token. */
export const chatHttp = defineAdapter({
  name: "models/chat-http",
  port: ports.models,
  needs: { clock: ports.clock },
  open: ({ clock }, options: HttpProviderOptions, scope) =>
    openHttpProvider(
      {
        protocol: "chat-completions",
        callPath: "/chat/completions",
        credentialHeader: (credential) => ({ authorization: `Bearer ${credential}` }),
        defaults: {},
      },
      options,
      clock,
      scope,
    ),
});
