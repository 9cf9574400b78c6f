import { definePlugin, type Exchange, optional, ports, type RequestHead, type RequestTrace } from "@portico/core";
import { hasParameters } from "@portico/core/model-protocols";
import { CallRecord, type ProxyCall } from "./call-record.ts";
import { modelProxyConfig } from "./config.ts";
import { modelProxyContract } from "./contract.ts";
import { safeTokenGuard } from "./guards.ts";
import { openOwnCredentials } from "./own-credentials.ts";
import type { Protocol } from "./protocol.ts";
import { createProviderDirectory, createTrail, TRAIL_HEADER } from "./provider-directory.ts";
import { relay } from "./relay.ts";
import { createRequestConverter } from "./request-converter.ts";
import { createSafeTokens, type SafeToken } from "./safe-tokens.ts";
import { translate } from "./translate.ts";
import { gatherBody, modelOf, receiveBody } from "./receive-body.ts";

/** The parts of a call that both routes pass on. */
interface CallInput {
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly who: SafeToken;
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
}

/** Area 1: trusted programs call configured model providers with a safe token (specification 4.1). */
export const modelProxy = definePlugin({
  name: "model-proxy",
  summary: "Model providers behind safe tokens, in Messages and Chat Completions format.",
  config: modelProxyConfig,
  needs: {
    models: ports.models,
    records: ports.records,
    secrets: ports.secrets,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    usage: optional(ports.usage),
  },
  contract: modelProxyContract,
  security: {
    "safe-token": [
      { type: "http", scheme: "bearer", description: "A safe token" },
      { type: "apiKey", in: "header", name: "x-api-key", description: "A safe token; wins when both are sent" },
    ],
  },
  guards: (given) => ({ "safe-token": safeTokenGuard(createSafeTokens(given)) }),
  async setup({ models, secrets, clock, ids, telemetry, usage }, { spoolDir, instances, ...tokens }, scope) {
    const own = await openOwnCredentials(tokens, secrets, scope);
    const trails = createTrail(ids.uuid(), instances);
    const directory = createProviderDirectory(models, telemetry.log);
    const converter = createRequestConverter(clock);
    scope.onClose(() => converter.close());

    const call = async (protocol: Protocol, { exchange, head, who, signal, trace }: CallInput) => {
      const provider = directory.bound(who.providerId);
      const isConverted = provider.protocol !== protocol;
      const record = new CallRecord({ usage, clock, who, provider, isConverted });
      trace.note(record);
      const admit = async (model: string) => {
        await directory.assertServes(provider, model, signal);
        // Only now: callers can invent any number of names, and each would be a label of metrics.
        record.model = model;
      };
      try {
        const trail = trails.extended(provider, head.header(TRAIL_HEADER));
        const traceparent = telemetry.traceparent();
        const passed: ProxyCall = { protocol, provider, exchange, head, own, trail, traceparent, signal, record };
        if (isConverted) {
          const { bytes, facts } = await gatherBody(exchange, clock);
          const model = modelOf(facts);
          await admit(model);
          await translate(passed, { bytes, model }, { clock, ids, converter });
        } else if (provider.setsParameters) {
          const { bytes, facts: read } = await gatherBody(exchange, clock);
          const model = modelOf(read);
          await admit(model);
          const facts = provider.facts?.(model) ?? {};
          const body = hasParameters(facts) ? await converter.setParameters(bytes, facts) : bytes;
          await relay(passed, { facts: read, body, length: body.length, rest: undefined });
        } else {
          await relay(passed, await receiveBody(exchange, { clock, spoolDir, admit }));
        }
      } catch (error) {
        record.close(signal.aborted ? "caller_left" : "upstream_error");
        throw error;
      }
      record.close();
    };

    return {
      async models({ signal }) {
        const created = Math.floor(clock.now() / 1000);
        const listed = await directory.list(signal);
        return {
          object: "list" as const,
          data: listed.map(({ id, ownedBy }) => ({ id, object: "model" as const, created, owned_by: ownedBy })),
        };
      },
      messages: (input) => call("messages", input),
      chatCompletions: (input) => call("chat-completions", input),
    };
  },
});
