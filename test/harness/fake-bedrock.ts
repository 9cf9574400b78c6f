import { Sha256 } from "@aws-crypto/sha256-js";
import { EventStreamCodec } from "@smithy/eventstream-codec";
import { SignatureV4 } from "@smithy/signature-v4";
import { readMessagesPrompt, writeMessage, writeMessageEvents } from "./echo-messages.ts";
import { echoTurn } from "./echo-turn.ts";
import { json, type Step, stream } from "./upstream-answers.ts";
import type { Answer, UpstreamExchange } from "./upstream-exchange.ts";
import type { UpstreamRequest } from "./upstream-request.ts";

/** Keys of AWS that the fake knows. */
export const AWS_KEYS = { accessKeyId: "AKIATEST0123456789AB", secretAccessKey: "secret/of/the/test+0123456789abcdef" };
export const BEDROCK_REGION = "eu-central-1";

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (text) => Buffer.from(text),
);

/** One frame of an event stream. */
export function frame(headers: Readonly<Record<string, string>>, body: string): Buffer {
  const typed = Object.entries(headers).map(([name, value]) => [name, { type: "string", value }] as const);
  return Buffer.from(codec.encode({ headers: Object.fromEntries(typed), body: Buffer.from(body) }));
}

/** A chunk with a Messages event, as Bedrock sends it. */
export function chunkFrame(event: object | string): Buffer {
  const text = typeof event === "string" ? event : JSON.stringify(event);
  const headers = { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" };
  return frame(headers, JSON.stringify({ bytes: Buffer.from(text).toString("base64"), p: "abcdefgh" }));
}

export function exceptionFrame(type: string, body: object): Buffer {
  const headers = { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" };
  return frame(headers, JSON.stringify(body));
}

/** An answer of frames. */
export function eventStream(...steps: readonly Step[]): Answer {
  return stream(steps, { headers: { "content-type": "application/vnd.amazon.eventstream", "x-amzn-requestid": "request-1" } });
}

/** A refusal in the form of AWS. */
export function awsError(status: number, type: string, message: string): Answer {
  return json(
    status,
    { message },
    { "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/`, "x-amzn-requestid": "request-1" },
  );
}

/**
 * The runtime of Bedrock. It refuses what the service refuses: a wrong signature, a body with `model` or `stream` ("extraneous key is not
 * permitted"), and a body without a version of Bedrock's own (docs.aws.amazon.com/bedrock, Anthropic Claude Messages API). Models before
 * Claude 4.7 refuse 2026-10-21 (platform.claude.com, Claude on Amazon Bedrock), in words such as those for other versions (boto/boto3#4218).
 */
export function fakeBedrock(
  known: { readonly keys?: readonly AwsKeys[]; readonly apiKey?: string } = { keys: [AWS_KEYS] },
): Answer {
  return async (exchange) => {
    const { request } = exchange;
    const refused = (await refusedSignature(request, known)) ?? refusedBody(await request.json());
    if (refused) return refused(exchange);
    return echo(exchange);
  };
}

interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

async function refusedSignature(
  request: UpstreamRequest,
  { keys = [], apiKey }: { readonly keys?: readonly AwsKeys[]; readonly apiKey?: string },
): Promise<Answer | undefined> {
  const { authorization = "" } = request.headers;
  if (apiKey !== undefined && authorization === `Bearer ${apiKey}`) return undefined;
  for (const credentials of keys) if ((await signatureOf(request, credentials)) === authorization) return undefined;
  if (keys.some(({ accessKeyId }) => authorization.includes(accessKeyId)))
    return awsError(
      403,
      "InvalidSignatureException",
      "The request signature we calculated does not match the signature you provided.",
    );
  return awsError(403, "UnrecognizedClientException", "The security token included in the request is invalid.");
}

/** The signature of a request, by AWS's own library. */
export async function signatureOf(request: UpstreamRequest, credentials: AwsKeys): Promise<string | undefined> {
  const signedNames = /SignedHeaders=([^,]+)/.exec(request.headers.authorization ?? "")?.[1]?.split(";") ?? [];
  const date = String(request.headers["x-amz-date"] ?? "");
  const at = date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  if (Number.isNaN(Date.parse(at)) || !signedNames.includes("host")) return undefined;
  const kept = signedNames.filter((name) => !["x-amz-date", "x-amz-security-token"].includes(name));
  const signer = new SignatureV4({ region: BEDROCK_REGION, service: "bedrock", credentials, sha256: Sha256 });
  const [path = "", search = ""] = request.url.split("?");
  const signed = await signer.sign(
    {
      method: request.method,
      protocol: "http:",
      hostname: "127.0.0.1",
      path,
      query: Object.fromEntries(new URLSearchParams(search)),
      headers: Object.fromEntries(kept.map((name) => [name, String(request.headers[name])])),
      body: await request.bytes(),
    },
    { signingDate: new Date(at) },
  );
  return signed.headers["authorization"];
}

function refusedBody(body: any): Answer | undefined {
  const extraneous = ["model", "stream"].find((key) => key in body);
  if (extraneous)
    return awsError(
      400,
      "ValidationException",
      `Malformed input request: #: extraneous key [${extraneous}] is not permitted, please reformat your input and try again.`,
    );
  const { anthropic_version: version } = body;
  if (version === undefined) return awsError(400, "ValidationException", "anthropic_version: Field required");
  if (version !== "bedrock-2023-05-31") return awsError(400, "ValidationException", `Invalid API version: ${version}`);
  return undefined;
}

async function echo(exchange: UpstreamExchange): Promise<void> {
  const { request } = exchange;
  const [, model = "", method] = /^\/model\/([^/]+)\/(\S+)$/.exec(request.url) ?? [];
  const turn = echoTurn(readMessagesPrompt({ ...((await request.json()) as object), model: decodeURIComponent(model) }));
  if (method === "invoke") return json(200, writeMessage(turn, "msg_bdrk_1"))(exchange);
  const chunks = writeMessageEvents(turn, "msg_bdrk_1").map((event) => chunkFrame(/^data: (.*)$/m.exec(event)![1]!));
  return eventStream(...chunks)(exchange);
}
