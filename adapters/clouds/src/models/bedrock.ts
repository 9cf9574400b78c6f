import { pipeline } from "node:stream";
import type { HttpProviderOptions, PostRequest } from "@portico/adapters/models/http-options";
import { openHttpProvider, readCall } from "@portico/adapters/models/upstream-provider";
import { defineAdapter, ports, Secret } from "@portico/core";
import { type JsonObject, readErrorText, writeExactly } from "@portico/core/model-protocols";
import { createAwsSignature, readAwsCredentials } from "./bedrock/aws-signature.ts";
import { EventStreamUnpacker } from "./bedrock/event-stream.ts";
import { exceptionToError } from "./bedrock/exceptions.ts";
import { encodeModel } from "./encode-model.ts";
import { errorAnswer } from "./error-answer.ts";

/** A provider of Messages models in Amazon Bedrock. */
export interface BedrockOptions extends Omit<HttpProviderOptions, "baseUrl" | "dialect" | "models"> {
  /** The region of AWS, such as `eu-central-1`. */
  readonly region: string;
  /** A profile of the shared files of AWS. Default: AWS's usual order of places. */
  readonly profile?: string | undefined;
  /** Names of models or of inference profiles, or their ARNs. */
  readonly models: Exclude<HttpProviderOptions["models"], "discover">;
  /** Default: the address of Bedrock's runtime in the region. */
  readonly baseUrl?: string | undefined;
}

/**
 * The version of the protocol that Bedrock takes (docs.aws.amazon.com/bedrock, Anthropic Claude Messages API), in place of the version that a
 * caller names. Models before Claude 4.7 do not take 2026-10-21 in Bedrock. For messages, that version refuses more, and answers alike
 * (platform.claude.com, Versions, and Migrating to API version 2026-10-21).
 */
const VERSION = "bedrock-2023-05-31";

/** The domains of the partitions of AWS, by the beginning of their regions' names (@aws-sdk/client-bedrock-runtime 3.1164). */
const DOMAINS: readonly (readonly [regions: string, domain: string])[] = [
  ["cn-", "amazonaws.com.cn"],
  ["eusc-", "amazonaws.eu"],
  ["us-iso-", "c2s.ic.gov"],
  ["us-isob-", "sc2s.sgov.gov"],
  ["us-isof-", "csp.hci.ic.gov"],
  ["eu-isoe-", "cloud.adc-e.uk"],
];

/** Bedrock reads the profile of a user from the body, and not from the header (@anthropic-ai/bedrock-sdk 1.1.3, changes). */
const PROFILE_HEADER = "anthropic-user-profile-id";

/**
 * A provider of Messages models in Amazon Bedrock. It signs its requests with the credentials of AWS's usual places, or sends a Bedrock API
 * key: `credential`, or else `AWS_BEARER_TOKEN_BEDROCK`, unless a profile is set.
 */
export const bedrock = defineAdapter({
  name: "models/bedrock",
  port: ports.models,
  needs: { clock: ports.clock, telemetry: ports.telemetry },
  open(given, { profile, region, ...options }: BedrockOptions, scope) {
    const ofEnvironment = profile === undefined ? process.env["AWS_BEARER_TOKEN_BEDROCK"]?.trim() : undefined;
    const credential = options.credential ?? (ofEnvironment && !options.keys ? new Secret(ofEnvironment) : undefined);
    const from = { provider: options.id, region, service: "bedrock", read: () => readAwsCredentials(profile) };
    const signature = credential || options.keys ? undefined : createAwsSignature(from, given.clock);
    return openHttpProvider(
      {
        protocol: "messages",
        callPath: "",
        credentialHeader: (key) => ({ authorization: `Bearer ${key}` }),
        defaults: {},
        exchange: (call, post, signal) => exchange(options.id, call, post, signal),
      },
      { ...options, credential, baseUrl: options.baseUrl ?? `https://bedrock-runtime.${region}.${domainOf(region)}` },
      given,
      scope,
      signature,
    );
  },
});

function domainOf(region: string): string {
  return DOMAINS.find(([beginning]) => region.startsWith(beginning))?.[1] ?? "amazonaws.com";
}

async function exchange(
  provider: string,
  call: ports.ModelCall,
  post: PostRequest,
  signal: AbortSignal,
): Promise<ports.ModelAnswer> {
  const read = await readCall(call, signal);
  if ("refused" in read) return read.refused;
  const isStream = read.body["stream"] === true;
  const path = `/model/${encodeModel(read.model)}/${isStream ? "invoke-with-response-stream" : "invoke"}`;
  const betas = betasOf(call, read.body);
  const send = (flags: readonly string[]) => post(path, headersOf(call), bodyOf({ ...profileOf(call), ...read.body }, flags));
  let answer = await send(betas);
  if (isStream && isEventStream(answer)) return unpacked(answer, provider);
  // A stream that is refused may have status 200 (Portkey-AI/gateway#1142).
  if (answer.status === 200 && !isStream) return answer;
  let text = await readErrorText(answer);
  if (betas.length > 0 && /invalid beta flag/i.test(text)) {
    // Models differ in the betas that they take, and refuse the whole request for one other: anthropics/claude-code#49648, #56595.
    answer = await send([]);
    if (isStream && isEventStream(answer)) return unpacked(answer, provider);
    if (answer.status === 200 && !isStream) return answer;
    text = await readErrorText(answer);
  }
  const name = String(answer.headers["x-amzn-errortype"] ?? "");
  return errorAnswer(exceptionToError(name, text, answer.status === 200 ? 400 : answer.status), answer);
}

/** Bedrock takes the betas from the body. */
function betasOf({ headers }: ports.ModelCall, { anthropic_beta: own }: JsonObject): readonly string[] {
  if (Array.isArray(own)) return own.filter((each) => typeof each === "string");
  return (headers["anthropic-beta"] ?? "").split(",").flatMap((each) => each.trim() || []);
}

function profileOf({ headers }: ports.ModelCall): JsonObject {
  const profile = headers[PROFILE_HEADER];
  return profile === undefined ? {} : { user_profile_id: profile };
}

/** Headers that belong to a signature, and those that Bedrock takes from the body, are not a caller's to send. */
const DROPPED = /^(?:x-amz-.*|anthropic-(?:version|beta|user-profile-id)|content-length)$/;

function headersOf({ headers }: ports.ModelCall): Record<string, string> {
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !DROPPED.test(name)));
  // An encoded answer could not be unpacked.
  return { ...kept, "content-type": "application/json", accept: "application/json", "accept-encoding": "identity" };
}

function bodyOf(body: JsonObject, betas: readonly string[]): Buffer {
  const { model: _model, stream: _stream, anthropic_beta: _beta, ...rest } = body;
  const written = { anthropic_version: VERSION, ...rest, ...(betas.length > 0 && { anthropic_beta: betas }) };
  return Buffer.from(writeExactly(written));
}

function isEventStream({ status, headers }: ports.ModelAnswer): boolean {
  return status === 200 && String(headers["content-type"]).startsWith("application/vnd.amazon.eventstream");
}

function unpacked(answer: ports.ModelAnswer, provider: string): ports.ModelAnswer {
  const { "content-length": _length, "content-encoding": _encoding, ...headers } = answer.headers;
  const events = new EventStreamUnpacker(provider);
  // Ends or destroys the two together. Readers of the events get the error of either.
  pipeline(answer.body, events, () => {});
  return { status: 200, headers: { ...headers, "content-type": "text/event-stream; charset=utf-8" }, body: events };
}
