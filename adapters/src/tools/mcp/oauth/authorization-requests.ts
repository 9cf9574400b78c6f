import {
  discoverOAuthServerInfo,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  type FetchLike,
  OAuthError,
  refreshAuthorization,
  RegistrationRejectedError,
  registerClient,
  selectResourceURL,
  startAuthorization,
} from "@modelcontextprotocol/client";
import { ports } from "@portico/core";
import type { Access, AuthorizationService, PendingLogin, RegisteredClient } from "./grant-records.ts";
import { isAddressRefused } from "./guarded-fetch.ts";

/** What the server and its authorization server say about access. */
export interface Discovered {
  readonly resource: string;
  readonly service: AuthorizationService;
  /** The scopes that the server asks for. */
  readonly scope: string | undefined;
}

/** The tokens of an answer. */
export type Tokens = Pick<Access, "accessToken" | "refreshToken"> & {
  readonly expiresInMs: number | undefined;
  readonly scope: string | undefined;
};

/**
 * Read the metadata of a server (RFC 9728) and of its authorization server (RFC 8414). Not the library's `auth`, which writes the service's
 * words to the console. Throws ToolAuthorizationFailed.
 */
export async function discover(serverUrl: URL, fetchFn: FetchLike): Promise<Discovered> {
  const challenge = await translated("unreachable", "The server cannot be reached", () => askChallenge(serverUrl, fetchFn));
  const { resourceMetadataUrl } = challenge;
  const found = await translated("unreachable", "The server's description of OAuth cannot be read", () =>
    discoverOAuthServerInfo(serverUrl, { fetchFn, ...(resourceMetadataUrl && { resourceMetadataUrl }) }),
  );
  const { authorizationServerMetadata: service, resourceMetadata } = found;
  if (!service) throw new ports.ToolAuthorizationFailed("unreachable", "The server has no description of OAuth");
  // The protocol forbids to go on without: https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#authorization-code-protection
  if (!service.code_challenge_methods_supported?.includes("S256"))
    throw new ports.ToolAuthorizationFailed("unsupported", "The service does not support PKCE with S256");
  const resource = await translated("unreachable", "The server's description is of another server", () =>
    selectResourceURL(serverUrl, {} as never, resourceMetadata),
  );
  const scope = challenge.scope ?? resourceMetadata?.scopes_supported?.join(" ");
  const offline = service.scopes_supported?.includes("offline_access") && scope !== undefined;
  return {
    // As the service wrote it: it compares the text.
    resource: resource === undefined ? withoutHash(serverUrl) : (resourceMetadata?.resource ?? resource.href),
    service: kept(service as AuthorizationService),
    scope: offline && !scope.split(" ").includes("offline_access") ? `${scope} offline_access` : scope,
  };
}

/** Register this program (RFC 7591). Throws ToolAuthorizationFailed. */
export async function register(
  service: AuthorizationService,
  redirectUrl: string,
  fetchFn: FetchLike,
): Promise<RegisteredClient> {
  if (service.registration_endpoint === undefined)
    throw new ports.ToolAuthorizationFailed("unsupported", "The service registers no clients: give a clientId in the settings");
  try {
    const { client_id, client_secret, token_endpoint_auth_method } = await registerClient(service.issuer, {
      metadata: service as never,
      clientMetadata: {
        client_name: "Portico",
        redirect_uris: [redirectUrl],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
      },
      fetchFn,
    });
    return { client_id, client_secret, token_endpoint_auth_method };
  } catch (cause) {
    if (RegistrationRejectedError.isInstance(cause))
      // Without its cause, which quotes the service's answer.
      throw new ports.ToolAuthorizationFailed("registration_refused", "The service refused to register this client");
    throw toFailure(cause, "unreachable", "The service did not register this client");
  }
}

/** The address at which a person agrees, and the verifier of its challenge. */
export async function authorizationAddress(
  { service, client, resource, redirectUrl }: Omit<PendingLogin, "verifier" | "serverUrl">,
  { state, scope }: { readonly state: string; readonly scope: string | undefined },
): Promise<{ readonly url: string; readonly verifier: string }> {
  const { authorizationUrl, codeVerifier } = await translated("unsupported", "The service has no usable authorization page", () =>
    startAuthorization(service.issuer, {
      metadata: service as never,
      clientInformation: client as never,
      redirectUrl,
      state,
      resource,
      ...(scope !== undefined && { scope }),
    }),
  );
  // A person's browser opens it.
  if (!/^https?:$/.test(authorizationUrl.protocol))
    throw new ports.ToolAuthorizationFailed("unsupported", "The service has no usable authorization page");
  return { url: authorizationUrl.href, verifier: codeVerifier };
}

/** Exchange a code for tokens. Throws ToolAuthorizationFailed: `refused` if the service refuses. */
export async function exchange(
  { service, client, verifier, redirectUrl, resource }: PendingLogin,
  { code, iss }: { readonly code: string; readonly iss: string | undefined },
  fetchFn: FetchLike,
): Promise<Tokens> {
  const given = { metadata: service as never, clientInformation: client as never, resource, fetchFn };
  return translated("refused", "The service refused the code", async () =>
    toTokens(
      await exchangeAuthorization(service.issuer, {
        ...given,
        authorizationCode: code,
        codeVerifier: verifier,
        redirectUri: redirectUrl,
        ...(iss !== undefined && { iss }),
      }),
    ),
  );
}

/** The errors with which a service says that a refresh token is of no use any more (RFC 6749, 5.2). */
const ENDED: ReadonlySet<string> = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);

/** Tokens of a longer lifetime are taken as such of this one, in seconds. */
const MOST_LIFETIME = 2 ** 31;

/** New tokens for a refresh token. Undefined if the service ended the access. Throws other errors, after which a retry may succeed. */
export async function refresh(access: Access, client: RegisteredClient, fetchFn: FetchLike): Promise<Tokens | undefined> {
  const { service, resource, refreshToken } = access;
  if (refreshToken === undefined) return undefined;
  const given = { metadata: service as never, clientInformation: client as never, resource, refreshToken, fetchFn };
  try {
    return toTokens(await refreshAuthorization(service.issuer, given));
  } catch (error) {
    // A wrong secret of the settings can be corrected there: the access has not ended.
    const hasSecretOfSettings = client.client_secret !== undefined && access.client.client_secret === undefined;
    if (OAuthError.isInstance(error) && ENDED.has(error.code) && !(hasSecretOfSettings && error.code === "invalid_client"))
      return undefined;
    throw quiet(error);
  }
}

/** Ask the service to revoke (RFC 7009). The access is forgotten here in any case. */
export async function revoke({ service, ...access }: Access, client: RegisteredClient, fetchFn: FetchLike): Promise<void> {
  if (service.revocation_endpoint === undefined) return;
  const body = new URLSearchParams({ token: access.refreshToken ?? access.accessToken, client_id: client.client_id });
  if (client.client_secret !== undefined) body.set("client_secret", client.client_secret);
  await fetchFn(service.revocation_endpoint, { method: "POST", body, redirect: "manual" });
}

/** The answer to a request without a token, which names the metadata and the scopes (RFC 9728, 5.1). */
async function askChallenge(serverUrl: URL, fetchFn: FetchLike) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "ping" });
  const response = await fetchFn(serverUrl, { method: "POST", headers, body, redirect: "manual" });
  return response.status === 401 ? extractWWWAuthenticateParams(response) : {};
}

function toTokens(answer: {
  readonly access_token: string;
  readonly refresh_token?: string | undefined;
  readonly expires_in?: number | undefined;
  readonly scope?: string | undefined;
}): Tokens {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds, scope } = answer;
  return {
    accessToken,
    refreshToken,
    expiresInMs: seconds === undefined ? undefined : Math.min(seconds, MOST_LIFETIME) * 1000,
    scope,
  };
}

function kept(service: AuthorizationService): AuthorizationService {
  const { issuer, authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint } = service;
  return {
    ...{ issuer, authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint },
    response_types_supported: service.response_types_supported,
    code_challenge_methods_supported: service.code_challenge_methods_supported,
    token_endpoint_auth_methods_supported: service.token_endpoint_auth_methods_supported,
    authorization_response_iss_parameter_supported: service.authorization_response_iss_parameter_supported,
  };
}

function withoutHash(url: URL): string {
  const copy = new URL(url);
  copy.hash = "";
  return copy.href;
}

async function translated<T>(code: ports.AuthorizationFault, message: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw toFailure(cause, code, message);
  }
}

function toFailure(cause: unknown, code: ports.AuthorizationFault, message: string): unknown {
  if (isAddressRefused(cause))
    return new ports.ToolAuthorizationFailed(
      "address_refused",
      "The server's description leads to an address that may not be called",
    );
  if (cause instanceof DOMException && cause.name === "AbortError") return cause;
  return new ports.ToolAuthorizationFailed(code, message, { cause: quiet(cause) });
}

/** An error without the service's words, which may quote what was sent. */
function quiet(error: unknown): Error {
  const { name, code, cause } = (error ?? {}) as { readonly name?: unknown; readonly code?: unknown; readonly cause?: unknown };
  const inner = (cause ?? {}) as { readonly code?: unknown };
  const named = [code, inner.code, name].find((each) => typeof each === "string" && /^\w{1,64}$/.test(each));
  return Object.assign(new Error("The request of OAuth failed"), { code: named ?? "UNKNOWN" });
}
