import type { Scope, Secret } from "@portico/core";
import { defineModelProvider, type OwnProvider } from "@portico/core/model-protocols";
import { answerPieces, type CallTimes } from "./ai-sdk/answer-pieces.ts";
import { callFailure } from "./ai-sdk/call-failure.ts";
import { writeCall } from "./ai-sdk/call-options.ts";
import type { Metadata } from "./ai-sdk/language-model.ts";
import { createPatientFetch } from "../outbound/patient-fetch.ts";
import type { OutboundOptions } from "../outbound/outbound-options.ts";
import { type AiSdkProvider, loadProvider, modelOf } from "./ai-sdk/load-models.ts";

/** Options of `aiSdk`. */
export interface AiSdkOptions {
  readonly id: string;
  /** The value of `owned_by`. Default: the id. */
  readonly type?: string | undefined;
  readonly models: readonly string[];
  /** A provider of the AI SDK that the host has created, or the name of an installed package that creates one. */
  readonly provider: AiSdkProvider | string;
  /** The name of the function of the package. Default: its only export of the form `createName`. */
  readonly create?: string | undefined;
  /** Options of that function. */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
  /** The key, which the function gets as `apiKey`. */
  readonly credential?: Secret | undefined;
  /** Options of each call, by the name of the SDK's provider: `{ openai: { store: false } }`. */
  readonly providerOptions?: Metadata | undefined;
  /** Absolute folder in whose `node_modules` the package is installed. Default: the working folder of the process. */
  readonly folder?: string | undefined;
  /** A proxy, and authorities: a package gets a `fetch` that uses them. Default: the own `fetch` of the package. */
  readonly outbound?: OutboundOptions | undefined;
  /** Milliseconds without a part of an answer after which a call fails. Default: 10 minutes. */
  readonly silenceMs?: number | undefined;
}

/**
 * Any provider package of the AI SDK (`@ai-sdk/groq` and others) as a model provider. The package is the user's: this one has no dependency on
 * it. It serves models of the specification versions 2, 3 and 4.
 */
export const aiSdk = defineModelProvider({
  name: "models/ai-sdk",
  async open({ clock }, options: AiSdkOptions, scope): Promise<OwnProvider> {
    const { id, type, models, credential, providerOptions, silenceMs } = options;
    const provider = typeof options.provider === "string" ? await loaded(options, options.provider, scope) : options.provider;
    const times = new Map<string, CallTimes>(models.map((model) => [model, {}]));
    // A model that cannot be served is found at the start.
    for (const model of models) modelOf(id, provider, model);
    return {
      id,
      ...(type !== undefined && { type }),
      models,
      takes: ["tools", "images", "documents", "thinking", "schema"],
      secrets: [...(credential ? [credential] : []), ...addressesOf(options.options)],
      ...(silenceMs !== undefined && { silenceMs }),
      async *answer(question, signal) {
        try {
          const model = modelOf(id, provider, question.model);
          const call = await writeCall(question, model, { signal, providerOptions });
          yield { type: "dropped", fields: call.dropped };
          yield* answerPieces(id, model, call.options, {
            isStream: question.isStream,
            times: times.get(question.model) ?? {},
          });
        } catch (error) {
          throw callFailure(error, id, clock);
        }
      },
    };
  },
});

function loaded(
  { id, create, options, credential, folder, outbound }: AiSdkOptions,
  name: string,
  scope: Scope,
): Promise<AiSdkProvider> {
  const requests = outbound && (outbound.proxy ?? outbound.ca) ? createPatientFetch(outbound) : undefined;
  if (requests) scope.onClose(() => requests.close());
  const given = { ...(requests && { fetch: requests.fetch }), ...options, ...(credential && { apiKey: credential.reveal() }) };
  return loadProvider(id, { package: name, create, options: given, folder: folder ?? process.cwd() });
}

/** No answer shows where the service is. */
function addressesOf({ baseURL }: Readonly<Record<string, unknown>> = {}): readonly string[] {
  const url = typeof baseURL === "string" ? URL.parse(baseURL) : null;
  return url ? [url.host] : [];
}
