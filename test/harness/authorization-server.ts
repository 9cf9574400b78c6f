import { createHash, randomBytes } from "node:crypto";
import { serveRequests } from "./mcp-http-server.ts";

/** An authorization server for tests. It refuses what a real one refuses. At `/authorize`, a browser agrees, refuses, or returns with the state of another person. */
export interface AuthorizationServer {
  readonly issuer: string;
  /** Requests, by path, such as `/token refresh_token`. */
  readonly requests: readonly string[];
  /** Every code and token that it gave. */
  readonly secrets: readonly string[];
  /** The redirect addresses of registered clients. */
  readonly clients: ReadonlyMap<string, readonly string[]>;
  /** What a person's browser does at the address: agrees, and gets the address to come back to. */
  agree(url: string): string;
  /** What a person's browser does at the address: refuses, and gets the address to come back to. */
  refuse(url: string): string;
  /** The user of an access token, if it is valid for this resource. */
  userOf(authorization: string | undefined, resource: string): string | undefined;
  /** End every access token now, as if it had expired. */
  expireTokens(): void;
  /** End every grant. */
  revokeAll(): void;
  /** Whether an answer to a refresh token repeats the access token, also if the server does not accept it any more. */
  repeatsTokens: boolean;
  /** Where requests for a path are redirected to. */
  redirect: ((path: string) => string | undefined) | undefined;
  /** Called before an answer of the token endpoint is sent. */
  beforeTokens: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

interface Code {
  readonly client: string;
  readonly redirect: string;
  readonly challenge: string;
  readonly resource: string;
  readonly scope: string;
  readonly user: string;
  grant?: string;
}

interface Grant {
  readonly client: string;
  readonly resource: string;
  readonly scope: string;
  readonly user: string;
  refresh: string;
  token?: string;
  isRevoked: boolean;
}

const hash = (text: string) => createHash("sha256").update(text).digest("base64url");

/** `metadata` replaces parts of its metadata. `lifetime`: seconds of an access token. `userOf`: who agrees. `client`: it has a secret. */
export async function startAuthorizationServer({
  metadata = {},
  lifetime = 3600,
  userOf: agreeing = () => "ada",
  client: known,
}: {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly lifetime?: number;
  readonly userOf?: () => string;
  readonly client?: { readonly id: string; readonly secret: string; readonly redirectUrl: string };
} = {}): Promise<AuthorizationServer> {
  const requests: string[] = [];
  const secrets: string[] = [];
  const clients = new Map<string, readonly string[]>(known ? [[known.id, [known.redirectUrl]]] : []);
  const codes = new Map<string, Code>();
  const grants = new Map<string, Grant>();
  const access = new Map<string, { readonly grant: string; isExpired: boolean }>();
  /** Which grant each refresh token belongs to, also those that were replaced. */
  const refreshes = new Map<string, string>();
  const secret = () => {
    const made = randomBytes(24).toString("base64url");
    secrets.push(made);
    return made;
  };
  const json = (body: unknown, status = 200) => Response.json(body, { status });
  const refuse = (error: string) => json({ error, error_description: `hidden-word ${secrets.at(-1) ?? ""}` }, 400);

  const issue = (id: string, grant: Grant) => {
    const token = (server.repeatsTokens && grant.token) || secret();
    grant.token = token;
    access.set(token, { grant: id, isExpired: access.get(token)?.isExpired ?? false });
    grant.refresh = secret();
    refreshes.set(grant.refresh, id);
    return json({
      ...{ access_token: token, token_type: "Bearer", expires_in: lifetime },
      ...{ refresh_token: grant.refresh, scope: grant.scope },
    });
  };

  const token = (form: URLSearchParams, authorization: string | null): Response => {
    const [id, password] = Buffer.from(authorization?.replace(/^Basic /, "") ?? "", "base64")
      .toString()
      .split(":");
    const client = form.get("client_id") ?? id ?? "";
    if (client === known?.id && (form.get("client_secret") ?? password) !== known.secret) return refuse("invalid_client");
    if (!clients.has(client)) return refuse("invalid_client");
    if (form.get("grant_type") === "authorization_code") {
      const code = codes.get(form.get("code") ?? "");
      if (!code || code.client !== client || code.redirect !== form.get("redirect_uri")) return refuse("invalid_grant");
      if (code.grant !== undefined) {
        // A reused code ends what it gave (RFC 6749, 4.1.2).
        grants.get(code.grant)!.isRevoked = true;
        return refuse("invalid_grant");
      }
      if (hash(form.get("code_verifier") ?? "") !== code.challenge) return refuse("invalid_grant");
      if (form.get("resource") !== code.resource) return refuse("invalid_target");
      code.grant = secret();
      const { resource, scope, user } = code;
      grants.set(code.grant, { client, resource, scope, user, refresh: "", isRevoked: false });
      return issue(code.grant, grants.get(code.grant)!);
    }
    const given = form.get("refresh_token") ?? "";
    const granted = refreshes.get(given);
    const grant = granted === undefined ? undefined : grants.get(granted);
    if (!grant || grant.client !== client || grant.isRevoked) return refuse("invalid_grant");
    if (grant.refresh !== given) {
      // Reuse of a rotated token: both of its holders lose the access (OAuth 2.1, 4.3.1).
      grant.isRevoked = true;
      return refuse("invalid_grant");
    }
    if (form.get("resource") !== grant.resource) return refuse("invalid_target");
    return issue(granted!, grant);
  };

  const server: AuthorizationServer = {
    issuer: "",
    requests,
    secrets,
    clients,
    repeatsTokens: false,
    redirect: undefined,
    beforeTokens: undefined,
    agree(address) {
      const { searchParams } = new URL(address);
      const given = (name: string) => searchParams.get(name) ?? "";
      const [client, redirect] = [given("client_id"), given("redirect_uri")];
      if (!clients.get(client)?.includes(redirect)) throw new Error("The client or its redirect address is unknown");
      if (given("response_type") !== "code" || given("code_challenge_method") !== "S256" || given("code_challenge") === "")
        throw new Error("The request has no challenge");
      const code = secret();
      const scope = given("scope");
      const about = { challenge: given("code_challenge"), resource: given("resource"), scope, user: agreeing() };
      codes.set(code, { client, redirect, ...about });
      const back = new URL(redirect);
      back.search = String(new URLSearchParams({ code, state: given("state"), iss: server.issuer }));
      return back.href;
    },
    refuse(address) {
      const back = new URL(server.agree(address));
      back.searchParams.delete("code");
      back.searchParams.set("error", "access_denied");
      return back.href;
    },
    userOf(authorization, resource) {
      const found = access.get(authorization?.replace(/^Bearer /, "") ?? "");
      const grant = found && grants.get(found.grant);
      return !grant || found.isExpired || grant.isRevoked || grant.resource !== resource ? undefined : grant.user;
    },
    expireTokens() {
      for (const each of access.values()) each.isExpired = true;
    },
    revokeAll() {
      for (const grant of grants.values()) grant.isRevoked = true;
    },
    close: () => host.close(),
  };
  const host = await serveRequests(async (request) => {
    const { pathname } = new URL(request.url);
    const { issuer } = server;
    const body = request.method === "POST" ? await request.text() : "";
    const form = new URLSearchParams(body);
    requests.push([pathname, ...(form.has("grant_type") ? [form.get("grant_type")] : [])].join(" "));
    const location = server.redirect?.(pathname);
    if (location !== undefined) return new Response(null, { status: 307, headers: { location } });
    switch (pathname) {
      case "/.well-known/oauth-authorization-server":
        return json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          registration_endpoint: `${issuer}/register`,
          revocation_endpoint: `${issuer}/revoke`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
          ...metadata,
        });
      case "/authorize": {
        const { search } = new URL(request.url);
        const link = (choice: string) =>
          `<a href="/authorize/${choice.toLowerCase()}${search.replaceAll("&", "&amp;")}">${choice}</a>`;
        const page = `<!doctype html><title>Authorize</title>${link("Agree")} ${link("Refuse")} ${link("Mislead")}`;
        return new Response(page, { headers: { "content-type": "text/html" } });
      }
      case "/authorize/agree":
        return Response.redirect(server.agree(request.url), 302);
      case "/authorize/refuse":
        return Response.redirect(server.refuse(request.url), 302);
      case "/authorize/mislead": {
        const back = new URL(server.agree(request.url));
        back.searchParams.set("state", "of-another-person");
        return Response.redirect(back.href, 302);
      }
      case "/register": {
        const given = JSON.parse(body) as { readonly redirect_uris?: string[] };
        if (!given.redirect_uris?.length) return refuse("invalid_redirect_uri");
        const client_id = `client-${clients.size + 1}`;
        clients.set(client_id, given.redirect_uris);
        return json({ ...given, client_id }, 201);
      }
      case "/token": {
        const answer = token(form, request.headers.get("authorization"));
        await server.beforeTokens?.();
        return answer;
      }
      case "/revoke": {
        const given = form.get("token") ?? "";
        const id = refreshes.get(given) ?? access.get(given)?.grant;
        if (id !== undefined) grants.get(id)!.isRevoked = true;
        return new Response(null, { status: 200 });
      }
      default:
        return new Response(null, { status: 404 });
    }
  });
  return Object.assign(server, { issuer: new URL(host.url).origin });
}
