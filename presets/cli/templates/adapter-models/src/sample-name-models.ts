import { Readable } from "node:stream";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { defineAdapter, orAborted, ports, type Secret } from "@portico/core";

type HttpOptions = Parameters<typeof chatHttp>[0];

export interface SampleNameModelsOptions extends Omit<HttpOptions, "credential" | "models"> {
  readonly models: readonly string[];
  /** The credential of one call: a key, or a token from a sign-in. */
  credentialOf(signal: AbortSignal): Promise<Secret>;
}

/**
 * A provider that speaks Chat Completions over HTTP, with its own authentication. Connections, streams, timeouts and aborts are
 * handled by the HTTP adapter. `messagesHttp` is the same adapter for the Messages protocol.
 */
export const sampleNameModels = defineAdapter({
  name: "models/sample-name",
  port: ports.models,
  needs: { clock: ports.clock },
  async open(given, { credentialOf, ...options }: SampleNameModelsOptions, scope): Promise<ports.ModelProvider> {
    const inner = await chatHttp(options).spec.open(given, options, scope);
    let latest: Secret | undefined;
    return {
      ...inner,
      async send(call, signal) {
        try {
          signal.throwIfAborted();
          latest = await orAborted(credentialOf(signal), signal);
          const headers = { ...call.headers, authorization: `Bearer ${latest.reveal()}` };
          return await inner.send({ ...call, headers }, signal);
        } catch (error) {
          // The caller's stream is always released, also after errors.
          if (call.body instanceof Readable) call.body.destroy();
          throw error;
        }
      },
      // Callers must not see a credential, also not in an upstream's error message.
      redact: (text) => inner.redact(latest ? text.replaceAll(latest.reveal(), "***") : text),
    };
  },
});
