import type { HttpProviderOptions, PostRequest } from "@portico/adapters/models/http-options";
import { openHttpProvider, readCall } from "@portico/adapters/models/upstream-provider";
import { defineAdapter, ports } from "@portico/core";
import { type JsonObject, readErrorText, readUpstreamError, writeExactly } from "@portico/core/model-protocols";
import { encodeModel } from "./encode-model.ts";
import { errorAnswer } from "./error-answer.ts";
import { createGoogleToken, readGoogleToken } from "./vertex/google-token.ts";

/** A provider of Messages models in Google's Vertex AI. */
export interface VertexOptions extends Omit<HttpProviderOptions, "baseUrl" | "credential" | "dialect" | "models"> {
  /** The region, such as `europe-west1`, or `global`, `us` or `eu`. */
  readonly region: string;
  /** The id of the project in Google Cloud. */
  readonly project: string;
  /** The key file of a service account, or another file of credentials. Default: Application Default Credentials. */
  readonly keyFile?: string | undefined;
  /** Names of models, such as `claude-sonnet-4-5@20250929`. */
  readonly models: Exclude<HttpProviderOptions["models"], "discover">;
  /** Default: the address of the region, with its version. */
  readonly baseUrl?: string | undefined;
}

/**
 * The version of the protocol that Vertex AI takes (docs.cloud.google.com, Claude models, "Use Claude models"), in place of the version that a
 * caller names. For messages, 2026-10-21 refuses more, and answers alike (platform.claude.com, Migrating to API version 2026-10-21).
 */
const VERSION = "vertex-2023-10-16";

/** Regions whose addresses have a form of their own (vercel/ai#14634, cline/cline#10287). */
const HOSTS: ReadonlyMap<string, string> = new Map([
  ["global", "aiplatform.googleapis.com"],
  ["us", "aiplatform.us.rep.googleapis.com"],
  ["eu", "aiplatform.eu.rep.googleapis.com"],
]);

/** A provider of Messages models in Google's Vertex AI. Its tokens come from a key file, or from Application Default Credentials. */
export const vertex = defineAdapter({
  name: "models/vertex",
  port: ports.models,
  needs: { clock: ports.clock, telemetry: ports.telemetry },
  open(given, { region, project, keyFile, ...options }: VertexOptions, scope) {
    const publisher = `/projects/${encodeModel(project)}/locations/${encodeModel(region)}/publishers/anthropic/models`;
    return openHttpProvider(
      {
        protocol: "messages",
        callPath: "",
        credentialHeader: () => ({}),
        defaults: {},
        exchange: (call, post, signal) => exchange(publisher, call, post, signal),
      },
      { ...options, baseUrl: options.baseUrl ?? `https://${HOSTS.get(region) ?? `${region}-aiplatform.googleapis.com`}/v1` },
      given,
      scope,
      createGoogleToken({ provider: options.id, read: readGoogleToken(keyFile, options.fetch) }, given.clock),
    );
  },
});

async function exchange(
  publisher: string,
  call: ports.ModelCall,
  post: PostRequest,
  signal: AbortSignal,
): Promise<ports.ModelAnswer> {
  const read = await readCall(call, signal);
  if ("refused" in read) return read.refused;
  const method = read.body["stream"] === true ? "streamRawPredict" : "rawPredict";
  // A server may drop what follows a semicolon in a segment, and with it the method (@anthropic-ai/vertex-sdk 1.1.3).
  const path = `${publisher}/${encodeModel(read.model).replaceAll(";", "%3B")}:${method}`;
  const { "anthropic-version": _version, "content-length": _length, ...given } = call.headers;
  const headers: Record<string, string> = { ...given, "content-type": "application/json" };
  const body = bodyOf(read.body);
  const answer = await post(path, headers, body);
  if (answer.status < 300) return answer;
  const text = await readErrorText(answer);
  // One beta that the model lacks refuses the request: "Unexpected value(s) … for the `anthropic-beta` header" (vercel/ai#4431).
  if (headers["anthropic-beta"] === undefined || !/anthropic-beta/.test(text)) return refused(answer, text);
  delete headers["anthropic-beta"];
  const again = await post(path, headers, body);
  return again.status < 300 ? again : refused(again, await readErrorText(again));
}

function bodyOf(body: JsonObject): Buffer {
  const { model: _model, ...rest } = body;
  return Buffer.from(writeExactly({ anthropic_version: VERSION, ...rest }));
}

/** Errors of the model are those of the Messages protocol. Those of Google have a form of their own, in a list for streams. */
function refused(answer: ports.ModelAnswer, text: string): ports.ModelAnswer {
  return errorAnswer(readUpstreamError("messages", answer.status, text || undefined), answer);
}
