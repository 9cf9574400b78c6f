import type { ports, Secret } from "@portico/core";
import { AwsV4Signer } from "aws4fetch";

export interface StoreCredentials {
  readonly region?: string;
  readonly accessKeyId: Secret;
  readonly secretAccessKey: Secret;
  readonly sessionToken?: Secret;
}

/** The signed parts of a request. */
export interface UnsignedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in lowercase hex: the store refuses other bytes, even over an unreliable connection. */
  readonly sha256: string;
}

/** The headers with which a request is sent. */
export type SignRequest = (request: UnsignedRequest) => Promise<Record<string, string>>;

const VISIBLE = /^[\x21-\x7e]+$/;

/**
 * AWS signatures, version 4, by the clock. It uses aws4fetch, which only signs and has no dependencies. The vendor's own client
 * brings 27 packages and 22 MB, with its own streams, retries and parser. Throws TypeError for credentials that are not valid in
 * a header.
 */
export function createSignRequest(credentials: StoreCredentials, clock: ports.Clock): SignRequest {
  const { region = "us-east-1", accessKeyId, secretAccessKey, sessionToken } = credentials;
  if (!/^[\w-]+$/.test(region)) throw new TypeError("A region is letters, digits, `_` and `-`");
  // Checked here, because an error about a header would show its value.
  const all = [accessKeyId, secretAccessKey, ...(sessionToken ? [sessionToken] : [])];
  if (!all.every((secret) => VISIBLE.test(secret.reveal()))) throw new TypeError("Credentials are visible ASCII characters");
  const cache = new Map<string, ArrayBuffer>();
  let day = "";
  return async ({ method, url, headers, sha256 }) => {
    const datetime = new Date(clock.now()).toISOString().replaceAll(/[:-]|\.\d{3}/g, "");
    // A derived key is valid for one day, and the library caches every key.
    if (!datetime.startsWith(day)) cache.clear();
    day = datetime.slice(0, 8);
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, "x-amz-content-sha256": sha256 },
      accessKeyId: accessKeyId.reveal(),
      secretAccessKey: secretAccessKey.reveal(),
      ...(sessionToken && { sessionToken: sessionToken.reveal() }),
      service: "s3",
      region,
      cache,
      datetime,
    });
    return Object.fromEntries((await signer.sign()).headers);
  };
}
