import { defineAdapter, optional, ports } from "@portico/core";
import { openHttpProvider } from "./http/http-provider.ts";
import type { HttpProviderOptions } from "./http-options.ts";

/** A provider that uses the Messages protocol over HTTP, with its key in `x-api-key` and a version header. */
export const messagesHttp = defineAdapter({
  name: "models/messages-http",
  port: ports.models,
  needs: { clock: ports.clock, telemetry: optional(ports.telemetry) },
  open: (given, options: HttpProviderOptions, scope) =>
    openHttpProvider(
      {
        protocol: "messages",
        callPath: "/messages",
        credentialHeader: (credential) => ({ "x-api-key": credential }),
        defaults: { "anthropic-version": "2023-06-01" },
      },
      options,
      given,
      scope,
    ),
});
