import { Sha256 } from "@aws-crypto/sha256-js";
import {
  type CredentialSource,
  createKnownSecrets,
  createRenewal,
  type RequestHeaders,
  type UnsignedRequest,
} from "@portico/adapters/models/upstream-provider";
import type { ports } from "@portico/core";
import { SignatureV4 } from "@smithy/signature-v4";
import { isCredentialRefused } from "./exceptions.ts";

/** Credentials of AWS. Those of a role end. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

/** What is signed beside the headers of AWS. More would break the signature where a program on the way changes it. */
const SIGNED = /^(?:content-type$|x-amz-|x-amzn-)/;

/** Signs requests with signature version 4. Credentials that end are renewed five minutes before their end, once for all calls. */
export function createAwsSignature(
  from: {
    /** Id of the provider, for error messages. */
    readonly provider: string;
    readonly region: string;
    readonly service: string;
    readonly read: () => Promise<AwsCredentials>;
  },
  clock: ports.Clock,
): CredentialSource {
  const known = createKnownSecrets([]);
  const read = async () => {
    const value = await from.read();
    known.replace([value.secretAccessKey, ...(value.sessionToken ? [value.sessionToken] : [])]);
    return { value, endsAt: value.expiration?.getTime() };
  };
  const used = new WeakMap<RequestHeaders, AwsCredentials>();
  const renewal = createRenewal(`Provider "${from.provider}" could not get AWS credentials`, read, clock);
  return {
    async headersFor(request) {
      const credentials = await renewal.current();
      const { region, service } = from;
      const signer = new SignatureV4({ region, service, credentials, sha256: Sha256 });
      const { headers } = await signer.sign(unsigned(request), { signingDate: new Date(clock.now()) });
      const own = added(headers, request);
      used.set(own, credentials);
      return own;
    },
    // Files of credentials may have changed: they are read again (openclaw/openclaw#77551).
    answered(headers, answer) {
      const credentials = used.get(headers);
      const isRefused = answer.status === 403 && isCredentialRefused(String(answer.headers["x-amzn-errortype"]));
      return isRefused && credentials !== undefined && renewal.refused(credentials);
    },
    secrets: known.all,
  };
}

/**
 * The usual places of AWS, in their order: environment, SSO, the shared files with their profile, a process, a web identity, and the
 * metadata of a container or machine. Files are read anew each time.
 */
export async function readAwsCredentials(profile: string | undefined): Promise<AwsCredentials> {
  const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
  return defaultProvider({ ...(profile !== undefined && { profile }), ignoreCache: true, logger: SILENT })();
}

/** The library would print warnings on the console. */
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

function unsigned({ method, origin, path, headers, body }: UnsignedRequest) {
  const url = new URL(origin + path);
  const query: Record<string, string | string[]> = {};
  for (const name of url.searchParams.keys()) query[name] = url.searchParams.getAll(name);
  const signed = Object.entries(headers).filter(([name]) => SIGNED.test(name));
  return {
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    // As it is sent: the URL object would not change it, but its parts are decoded by no one.
    path: path.split("?")[0]!,
    query,
    headers: { ...Object.fromEntries(signed), host: url.host },
    body,
  };
}

/** Only what the signature added. */
function added(headers: Readonly<Record<string, string>>, request: UnsignedRequest): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(lower.filter(([name]) => name !== "host" && request.headers[name] === undefined));
}
