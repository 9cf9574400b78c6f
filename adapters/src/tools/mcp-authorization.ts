import { randomBytes } from "node:crypto";
import type { FetchLike } from "@modelcontextprotocol/client";
import { ports, retryWhileStoreAway } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import type { OutboundOptions } from "../outbound/outbound-options.ts";
import {
  authorizationAddress,
  discover,
  exchange,
  refresh,
  register,
  revoke,
  type Tokens,
} from "./mcp/oauth/authorization-requests.ts";
import {
  type Access,
  GrantRecords,
  type PendingLogin,
  type RegisteredClient,
  type StoredGrant,
  type TakenLogin,
} from "./mcp/oauth/grant-records.ts";
import { createGuardedFetch } from "./mcp/oauth/guarded-fetch.ts";
import type { McpAuthOptions } from "./mcp-options.ts";

/** Tokens are renewed this long before they expire, or in the middle of a shorter lifetime. */
const EARLY_MS = 30_000;
/** Longer than a request for new tokens may take. */
const RENEWAL_MS = 40_000;
const LOOK_MS = 200;
/** How long a renewal may still take while the process closes. */
const LAST_MS = 3_000;
const TEND_MS = 3_600_000;
const STATE_BYTES = 32;

/** What an authorization is made of. */
export interface McpAuthorizationGiven {
  readonly records: ports.Records;
  readonly sealing: ports.Sealing;
  readonly clock: ports.Clock;
}

/** An MCP server with accounts. */
export interface McpAuthorizationOptions {
  readonly id: string;
  readonly url: URL;
  readonly auth: McpAuthOptions;
  readonly outbound?: OutboundOptions | undefined;
}

/** A token for one request, and since when its account is connected. */
export interface SentToken {
  readonly token: string;
  readonly connectedAt: number;
}

/** The access of one MCP server to accounts: connects them, and gives the tokens for its requests. */
export class McpAuthorization implements ports.ToolAuthorization {
  readonly per: McpAuthOptions["per"];
  readonly #options: McpAuthorizationOptions;
  readonly #clock: ports.Clock;
  readonly #records: GrantRecords;
  readonly #requests: ReturnType<typeof createGuardedFetch>;
  readonly #closing = new AbortController();
  /** Aborts later than `#closing`: a renewal that has begun is stored. */
  readonly #ended = new AbortController();
  /** Renewals of this process, by user: true once they have ended, false while another process renews. */
  readonly #renewals = new Map<string | undefined, Promise<boolean>>();
  #tending: Promise<void> | undefined;
  #nextTending: ports.Timer | undefined;

  constructor(options: McpAuthorizationOptions, given: McpAuthorizationGiven) {
    const { url, auth, outbound } = options;
    this.per = auth.per;
    this.#options = options;
    this.#clock = given.clock;
    this.#records = new GrantRecords(options.id, given);
    this.#requests = createGuardedFetch({ url, allow: auth.allow, outbound }, given.clock);
  }

  async status(userId?: string): Promise<ports.ToolGrant> {
    const found = await this.#records.find(userId);
    if (!found) return { state: "not_connected" };
    const { connectedAt, scope } = found.value;
    return { state: (await this.#accessOf(found)) ? "connected" : "ended", connectedAt, scope };
  }

  async begin(wanted: ports.BeginAuthorization, signal: AbortSignal): Promise<ports.BegunAuthorization> {
    const { userId, by, redirectUrl, keepsClient = true } = wanted;
    const { url: server, auth } = this.#options;
    const ask = this.#ask(signal);
    return unlessAborted(signal, async () => {
      const { service, resource, scope } = await discover(server, ask);
      const client = await this.#clientFor(service, redirectUrl, keepsClient, ask);
      const state = randomBytes(STATE_BYTES).toString("base64url");
      const asked = auth.scopes ? auth.scopes.join(" ") || undefined : scope;
      const about = { service, client, resource, redirectUrl };
      const { url, verifier } = await authorizationAddress(about, { state, scope: asked });
      const login: PendingLogin = { ...about, client: this.#withoutSecret(client), serverUrl: server.href, verifier };
      return { url, state, expiresAt: await this.#records.addLogin(state, { userId, by }, login) };
    });
  }

  async finish(received: ports.FinishAuthorization, signal: AbortSignal): Promise<ports.ToolGrant> {
    const { userId, by, state, code, iss } = received;
    const login = await this.#records.takeLogin(state, { userId, by });
    if (!login || login.serverUrl !== this.#options.url.href)
      throw new ports.ToolAuthorizationFailed("state_invalid", "The state is unknown, used, expired, or of another user");
    try {
      if (received.error !== undefined || code === undefined)
        throw new ports.ToolAuthorizationFailed("refused", "The service gave no access");
      return await this.#exchange(login, { userId, code, iss }, signal);
    } catch (error) {
      // What cannot be removed now expires.
      await this.#records.dropLogin(login).catch(() => undefined);
      throw error;
    }
  }

  async #exchange(
    login: TakenLogin,
    { userId, code, iss }: { readonly userId: string | undefined; readonly code: string; readonly iss: string | undefined },
    signal: AbortSignal,
  ): Promise<ports.ToolGrant> {
    return unlessAborted(signal, async () => {
      const pending = { ...login, client: this.#withSecret(login.client) };
      const tokens = await exchange(pending, { code, iss }, this.#ask(signal)).catch(async (error: unknown) => {
        // The service may have forgotten the client: the next attempt registers it again.
        await this.#records.removeClient(login.service.issuer, login.redirectUrl);
        throw error;
      });
      const { serverUrl, resource, service, client } = login;
      const access: Access = { serverUrl, resource, service, client, ...this.#accessFrom(tokens, undefined) };
      const about = { userId, connectedAt: this.#clock.now(), scope: tokens.scope };
      // A code is valid once: without this write, the person must connect again.
      const isSaved = await this.#whileAway(() => this.#records.saveNew(about, access, login));
      if (!isSaved) {
        await revoke(access, pending.client, this.#ask(signal)).catch(() => undefined);
        throw new ports.ToolAuthorizationFailed("state_invalid", "The connection was removed while it was finished");
      }
      return { state: "connected", connectedAt: about.connectedAt, scope: about.scope };
    });
  }

  async disconnect(userId: string | undefined, signal: AbortSignal): Promise<boolean> {
    const removed = await this.#records.remove(userId);
    // The service may be away: what matters is that nothing uses the access any more.
    if (removed?.access) {
      const { access } = removed;
      await revoke(access, this.#withSecret(access.client), this.#ask(signal)).catch(() => undefined);
    }
    return removed !== undefined;
  }

  /**
   * The token for a request, renewed if it expires soon or is the `refused` one. Two processes never spend one refresh token: a lease in the record
   * lets one of them renew. Throws ToolsNotConnected, ToolsUnavailable, and errors of stores.
   */
  async token(userId: string | undefined, refused?: string): Promise<SentToken> {
    // A service may answer with the refused token, or with one that expires at once: it is used, and not renewed again for this request.
    for (let isRenewed = false; ;) {
      this.#closing.signal.throwIfAborted();
      const found = await this.#records.find(userId);
      const access = found && (await this.#accessOf(found));
      if (!access) throw this.#notConnected();
      const isOld = access.renewAt !== undefined && access.renewAt <= this.#clock.now();
      const { connectedAt } = found.value;
      if (isRenewed || (access.accessToken !== refused && !isOld)) return { token: access.accessToken, connectedAt };
      const renewal =
        this.#renewals.get(userId) ?? this.#renew(found, access, userId).finally(() => this.#renewals.delete(userId));
      this.#renewals.set(userId, renewal);
      isRenewed = await renewal;
    }
  }

  /** Seal again what an earlier key of the instance sealed, and remove begun connections that have expired: now, and each hour until the end. */
  tend(): void {
    const look = async (): Promise<void> => {
      await this.#records.removeExpired();
      await this.#records.sealAgain(this.#closing.signal);
    };
    // A store that is away now is asked again later.
    this.#tending = look().catch(() => undefined);
    this.#nextTending = this.#clock.after(TEND_MS, () => this.tend());
  }

  /** Stops waits and requests. A renewal may end, because its refresh token may be spent already. */
  async close(): Promise<void> {
    this.#nextTending?.cancel();
    const reason = new ports.ToolsUnavailable(`MCP server "${this.#options.id}" is closed`);
    this.#closing.abort(reason);
    const late = this.#clock.after(LAST_MS, () => this.#ended.abort(reason));
    await Promise.allSettled([...this.#renewals.values(), this.#tending]);
    late.cancel();
    await this.#requests.close();
  }

  /** Renew a grant: true. Or wait a little while another process does: false. */
  async #renew(found: ports.Stored<StoredGrant>, access: Access, userId: string | undefined): Promise<boolean> {
    const { renewingUntil = 0, ...about } = found.value;
    const now = this.#clock.now();
    if (renewingUntil > now) {
      await this.#clock.sleep(Math.min(LOOK_MS, renewingUntil - now), this.#closing.signal);
      return false;
    }
    const leased = await this.#records.replace(found, { ...about, renewingUntil: now + RENEWAL_MS });
    if (!leased) return false;
    const { server, connectedAt, scope } = about;
    const tokens = await refresh(access, this.#withSecret(access.client), this.#requests.under(this.#ended.signal)).catch(
      async (cause: unknown) => {
        await this.#records.replace(leased, about).catch(() => undefined);
        throw new ports.ToolsUnavailable(`MCP server "${this.#options.id}" cannot renew its access now`, { cause });
      },
    );
    await this.#persist(async () => {
      if (!tokens) {
        const owner = userId === undefined ? {} : { userId };
        await this.#records.replace(leased, { server, ...owner, connectedAt, ...(scope !== undefined && { scope }) });
        return;
      }
      const next: Access = { ...access, ...this.#accessFrom(tokens, access.refreshToken) };
      await this.#records.save({ userId, connectedAt, scope: tokens.scope ?? scope }, next, leased.version);
    });
    return true;
  }

  /** The old refresh token may be spent, so the store is tried again. A person who disconnected or connected meanwhile wins. */
  async #persist(write: () => Promise<unknown>): Promise<void> {
    await this.#whileAway(() => write().catch(undefinedAtConflict));
  }

  #whileAway<T>(write: () => Promise<T>): Promise<T> {
    return retryWhileStoreAway({ clock: this.#clock, signal: this.#ended.signal }, write);
  }

  async #clientFor(
    service: PendingLogin["service"],
    redirectUrl: string,
    keepsClient: boolean,
    ask: FetchLike,
  ): Promise<RegisteredClient> {
    const { clientId } = this.#options.auth;
    if (clientId !== undefined) return this.#withSecret({ client_id: clientId });
    const known = keepsClient ? await this.#records.findClient(service.issuer, redirectUrl) : undefined;
    if (known) return known;
    const client = await register(service, redirectUrl, ask);
    if (keepsClient) await this.#records.saveClient(service.issuer, redirectUrl, client);
    return client;
  }

  #withSecret(client: RegisteredClient): RegisteredClient {
    const { clientId, clientSecret } = this.#options.auth;
    return clientSecret && client.client_id === clientId ? { ...client, client_secret: clientSecret.reveal() } : client;
  }

  #withoutSecret(client: RegisteredClient): RegisteredClient {
    return client.client_id === this.#options.auth.clientId ? { client_id: client.client_id } : client;
  }

  #accessFrom({ accessToken, refreshToken, expiresInMs }: Tokens, earlier: string | undefined) {
    // A token without a lifetime would be renewed forever.
    const renewAt =
      expiresInMs === undefined || expiresInMs <= 0
        ? undefined
        : this.#clock.now() + expiresInMs - Math.min(EARLY_MS, expiresInMs / 2);
    return { accessToken, refreshToken: refreshToken ?? earlier, renewAt };
  }

  /** Undefined if it has ended, or belongs to another address than the server has now. */
  async #accessOf(found: ports.Stored<StoredGrant>): Promise<Access | undefined> {
    const access = await this.#records.open(found);
    return access?.serverUrl === this.#options.url.href ? access : undefined;
  }

  #ask(signal: AbortSignal): FetchLike {
    return this.#requests.under(AbortSignal.any([signal, this.#closing.signal]));
  }

  #notConnected(): ports.ToolsNotConnected {
    return new ports.ToolsNotConnected(`MCP server "${this.#options.id}"`);
  }
}

async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
