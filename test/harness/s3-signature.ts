import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface SignedRequest {
  readonly method: string;
  /** As it was sent, still encoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: readonly Buffer[];
}

export interface SigningKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly region: string;
}

const HEADER =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/;
const SKEW_MS = 15 * 60_000;

/** The code with which S3 refuses a request; undefined for one that is signed as it must be. Worked out by hand, from its documentation. */
export function refusalOf(request: SignedRequest, key: SigningKey, now: number): string | undefined {
  const { headers } = request;
  const [, id, day, region, names = "", signature] = HEADER.exec(headers.authorization ?? "") ?? [];
  if (signature === undefined) return "AccessDenied";
  if (id !== key.accessKeyId) return "InvalidAccessKeyId";
  if (region !== key.region) return "AuthorizationHeaderMalformed";
  if (headers["x-amz-security-token"] !== key.sessionToken) return "InvalidToken";
  const date = `${headers["x-amz-date"]}`;
  const sentAt = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!(Math.abs(sentAt - now) <= SKEW_MS) || !date.startsWith(day!)) return "RequestTimeTooSkewed";
  const mustBeSigned = Object.keys(headers).filter((name) => name === "host" || name.startsWith("x-amz-"));
  if (!mustBeSigned.every((name) => names.split(";").includes(name))) return "AccessDenied";
  if (headers["x-amz-content-sha256"] !== sha256(request.body)) return "XAmzContentSHA256Mismatch";
  return signatureOf(request, names, date, `${day}/${region}/s3/aws4_request`, key) === signature
    ? undefined
    : "SignatureDoesNotMatch";
}

function signatureOf(request: SignedRequest, names: string, date: string, scope: string, key: SigningKey): string {
  const { method, path, query, headers } = request;
  const pairs = [...query].map(([name, value]) => `${encode(name)}=${encode(value)}`).toSorted();
  const lines = names.split(";").map((name) => `${name}:${`${headers[name]}`.trim().replaceAll(/ +/g, " ")}\n`);
  const canonical = [method, path, pairs.join("&"), lines.join(""), names, `${headers["x-amz-content-sha256"]}`].join("\n");
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256([Buffer.from(canonical)])].join("\n");
  const signingKey = scope.split("/").reduce((from: string | Buffer, word) => hmac(from, word), `AWS4${key.secretAccessKey}`);
  return hmac(signingKey, text).toString("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sha256(chunks: readonly Buffer[]): string {
  const hash = createHash("sha256");
  for (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}
