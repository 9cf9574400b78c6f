import { defineAdapter, ports, withoutEnd } from "@portico/core";
import { openHttpProvider } from "./http/http-provider.ts";
import { readCall } from "./http/read-call.ts";
import type { HttpProviderOptions, PostRequest } from "./http-options.ts";

/** A provider of Chat Completions in Azure. Its models are the names of deployments. */
export interface AzureOptions extends Omit<HttpProviderOptions, "models"> {
  /** The address of the resource, such as `https://my-resource.openai.azure.com`, with or without `/openai` and `/openai/v1`. */
  readonly baseUrl: string;
  /** Names of deployments. */
  readonly models: Exclude<HttpProviderOptions["models"], "discover">;
  /** Sends calls to the addresses of deployments, with this version. Default: to `/openai/v1`, which has no version. */
  readonly apiVersion?: string | undefined;
}

/**
 * A provider of Chat Completions in Azure, with its key in `api-key`. Calls go to `/openai/v1`, or with `apiVersion` to the deployment's own
 * address (learn.microsoft.com, Azure OpenAI, "API version lifecycle").
 */
export const azure = defineAdapter({
  name: "models/azure",
  port: ports.models,
  needs: { clock: ports.clock, telemetry: ports.telemetry },
  open(given, { apiVersion, ...options }: AzureOptions, scope) {
    const resource = withoutEnd(options.baseUrl, "/").replace(/\/openai(?:\/v1)?$/, "");
    return openHttpProvider(
      {
        protocol: "chat-completions",
        callPath: "/openai/v1/chat/completions",
        credentialHeader: (key) => ({ "api-key": key }),
        defaults: {},
        ...(apiVersion !== undefined && {
          exchange: (call, post, signal) => toDeployment(apiVersion, call, post, signal),
        }),
      },
      { ...options, baseUrl: resource },
      given,
      scope,
    );
  },
});

/** The address names the deployment, so that the body is read first. It is sent as it is. */
async function toDeployment(
  apiVersion: string,
  call: ports.ModelCall,
  post: PostRequest,
  signal: AbortSignal,
): Promise<ports.ModelAnswer> {
  const read = await readCall(call, signal);
  if ("refused" in read) return read.refused;
  const { "content-length": _length, ...headers } = call.headers;
  const path = `/openai/deployments/${encodeURIComponent(read.model)}/chat/completions?api-version=${encodeURIComponent(apiVersion)}`;
  return post(path, headers, read.bytes);
}
