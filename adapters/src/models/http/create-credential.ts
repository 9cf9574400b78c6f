import { Secret } from "@portico/core";
import type { HttpProviderOptions } from "../http-options.ts";
import { createCommandCredential } from "./command-credential.ts";
import { createFixedCredential, type CredentialSource, type RequestHeaders } from "./credentials.ts";
import type { LimitMeter } from "./limit-gauges.ts";
import { createPooledCredential } from "./pooled-credential.ts";

const KEY_REST_MS = 60_000;

/** The source of a provider's credential, by what its options have: several keys, a command, one key or none. */
export function createCredential(
  headerOf: (credential: string) => RequestHeaders,
  options: HttpProviderOptions,
  given: LimitMeter,
): CredentialSource {
  const { id, credential, keys, keyRestMs = KEY_REST_MS, rotation } = options;
  if (keys) return createPooledCredential(headerOf, { id, keys, keyRestMs, rotation }, given);
  if (credential && !(credential instanceof Secret)) return createCommandCredential(headerOf, { id, credential }, given);
  return createFixedCredential(headerOf, { credential, rotation }, given.scope);
}
