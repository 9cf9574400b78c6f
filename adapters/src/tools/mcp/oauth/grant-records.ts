import { createHash } from "node:crypto";
import { ports } from "@portico/core";
import { sealAgain, undefinedAtConflict } from "@portico/core/kit";

/** The access to an account, as it is sealed. */
export interface Access {
  /** The server's address. Tokens are sent nowhere else, also after the settings name another address. */
  readonly serverUrl: string;
  readonly resource: string;
  readonly service: AuthorizationService;
  readonly client: RegisteredClient;
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  /** Milliseconds since 1970 after which the token is renewed before it is used. Undefined: only once it is refused. */
  readonly renewAt?: number | undefined;
}

/** What is used of the metadata of an authorization server (RFC 8414), by its names. */
export interface AuthorizationService {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly registration_endpoint?: string | undefined;
  readonly revocation_endpoint?: string | undefined;
  readonly response_types_supported: string[];
  readonly code_challenge_methods_supported?: string[] | undefined;
  readonly token_endpoint_auth_methods_supported?: string[] | undefined;
  readonly authorization_response_iss_parameter_supported?: boolean | undefined;
}

/** A client that an authorization server knows. The secret of a client of the settings stays there. */
export interface RegisteredClient {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly token_endpoint_auth_method?: string | undefined;
}

/** A grant as it is stored. Without `sealed`, it has ended. */
export interface StoredGrant {
  readonly server: string;
  readonly userId?: string | undefined;
  readonly connectedAt: number;
  readonly scope?: string | undefined;
  readonly sealed?: string | undefined;
  /** Until when one process alone renews the tokens. */
  readonly renewingUntil?: number | undefined;
}

/** A connection that was begun. */
interface StoredLogin {
  /** Server, user, and the person who began. */
  readonly owner: string;
  readonly userId?: string | undefined;
  readonly expiresAt: number;
  /** Absent once its person came back: its state is not valid again. */
  readonly sealed?: string | undefined;
}

/** A connection whose person came back. Its grant is saved only while it is stored, so that erasing a user also ends what is being finished. */
export interface TakenLogin extends PendingLogin {
  readonly id: string;
  readonly version: number;
}

type GrantFacts = Pick<StoredGrant, "userId" | "connectedAt" | "scope">;
type LoginOwner = Pick<ports.BeginAuthorization, "userId" | "by">;

/** What a person's return is finished with. */
export interface PendingLogin {
  readonly serverUrl: string;
  readonly resource: string;
  readonly service: AuthorizationService;
  readonly client: RegisteredClient;
  readonly verifier: string;
  readonly redirectUrl: string;
}

interface StoredClient {
  readonly server: string;
  readonly registeredAt: number;
  readonly sealed: string;
}

/** How long a person may take to agree. */
const LOGIN_MS = 10 * 60_000;
/** The oldest ones of an owner become invalid. */
const MOST_LOGINS = 10;
/** Of a server. Each address to come back to has a client, and callers choose addresses. The oldest clients are registered again when needed. */
const MOST_CLIENTS = 100;
const PAGE = 100;

/** The collections of grants, begun connections and registered clients, of all MCP servers. */
export function openGrantCollections(records: ports.Records) {
  return {
    grants: records.collection<StoredGrant>({ name: "mcp-grants", indexes: { byUser: ["userId"] } }),
    logins: records.collection<StoredLogin>({
      name: "mcp-logins",
      indexes: { byEnd: ["expiresAt"], byOwner: ["owner", "expiresAt"], byUser: ["userId"] },
    }),
    clients: records.collection<StoredClient>({ name: "mcp-clients", indexes: { byServer: ["server", "registeredAt"] } }),
  };
}

/** The stored grants of one MCP server, sealed. */
export class GrantRecords {
  readonly #server: string;
  readonly #sealing: ports.Sealing;
  readonly #clock: ports.Clock;
  readonly #records: ports.Records;
  readonly #stored: ReturnType<typeof openGrantCollections>;

  constructor(
    server: string,
    given: { readonly records: ports.Records; readonly sealing: ports.Sealing; readonly clock: ports.Clock },
  ) {
    this.#server = server;
    this.#sealing = given.sealing;
    this.#clock = given.clock;
    this.#records = given.records;
    this.#stored = openGrantCollections(given.records);
  }

  /** The grant of a user, or of the instance. */
  find(userId: string | undefined): Promise<ports.Stored<StoredGrant> | undefined> {
    return this.#stored.grants.get(this.#idOf(userId));
  }

  /** The access of a stored grant. Undefined if it has ended, or was sealed with a key that is lost. */
  async open({ id, value }: ports.Stored<StoredGrant>): Promise<Access | undefined> {
    return value.sealed === undefined ? undefined : this.#open<Access>(`mcp-grant:${id}`, value.sealed);
  }

  /** Write a renewed grant in the place of a version. Throws RecordConflict. */
  async save(about: GrantFacts, access: Access, expected: number): Promise<void> {
    const [id, grant] = await this.#toStored(about, access);
    await this.#stored.grants.put(id, grant, expected);
  }

  /** Write the grant of a connection, which ends. False if the connection was removed meanwhile: with its user, or because it took too long. */
  async saveNew(about: GrantFacts, access: Access, login: TakenLogin): Promise<boolean> {
    const { grants, logins } = this.#stored;
    const [id, grant] = await this.#toStored(about, access);
    try {
      await this.#records.batch([logins.write.remove(login.id, login.version), grants.write.put(id, grant)]);
      return true;
    } catch (error) {
      if (!(error instanceof ports.RecordConflict)) throw error;
      // An earlier attempt, whose answer was lost, may have written it.
      const found = await this.find(about.userId);
      return found !== undefined && (await this.open(found))?.accessToken === access.accessToken;
    }
  }

  async #toStored({ userId, ...about }: GrantFacts, access: Access): Promise<[id: string, grant: StoredGrant]> {
    const id = this.#idOf(userId);
    const sealed = await this.#sealing.seal(`mcp-grant:${id}`, JSON.stringify(access));
    return [id, { server: this.#server, ...(userId !== undefined && { userId }), ...about, sealed }];
  }

  /** Replace a grant by one without tokens, or with a lease. Undefined if another process wrote in between. */
  async replace({ id, version }: ports.Stored<StoredGrant>, value: StoredGrant): Promise<ports.Stored<StoredGrant> | undefined> {
    return this.#stored.grants.put(id, value, version).catch(undefinedAtConflict);
  }

  /** Remove a grant. The access that it had, if it had one. */
  async remove(userId: string | undefined): Promise<{ readonly access: Access | undefined } | undefined> {
    const found = await this.find(userId);
    if (!found) return undefined;
    const access = await this.open(found);
    return (await this.#stored.grants.remove(found.id)) ? { access } : undefined;
  }

  /** Keep what the return of a person is finished with. Returns until when. */
  async addLogin(state: string, { userId, by }: LoginOwner, login: PendingLogin): Promise<number> {
    const { logins } = this.#stored;
    const now = this.#clock.now();
    await this.removeExpired();
    const owner = this.#ownerOf({ userId, by });
    const order = { by: "expiresAt", direction: "descending" } as const;
    const others = await logins.query({ where: { owner }, order, limit: 100 });
    for (const { id } of others.items.slice(MOST_LOGINS - 1)) await logins.remove(id);
    const id = hashed(state);
    const expiresAt = now + LOGIN_MS;
    const sealed = await this.#sealing.seal(`mcp-login:${id}`, JSON.stringify(login));
    await logins.put(id, { owner, ...(userId !== undefined && { userId }), expiresAt, sealed }, "absent");
    return expiresAt;
  }

  /**
   * Take a begun connection: a state is valid once, also for two processes, and for its owner only. It stays stored, without its secrets, until
   * `saveNew` or `dropLogin`.
   */
  async takeLogin(state: string, owner: LoginOwner): Promise<TakenLogin | undefined> {
    const { logins } = this.#stored;
    const found = await logins.get(hashed(state));
    if (!found || found.value.owner !== this.#ownerOf(owner)) return undefined;
    const { sealed, ...rest } = found.value;
    const now = this.#clock.now();
    if (sealed === undefined || rest.expiresAt <= now) return undefined;
    const taken = await logins.put(found.id, { ...rest, expiresAt: now + LOGIN_MS }, found.version).catch(undefinedAtConflict);
    if (!taken) return undefined;
    const login = await this.#open<PendingLogin>(`mcp-login:${found.id}`, sealed);
    return login && { ...login, id: taken.id, version: taken.version };
  }

  /** Remove a connection that was not finished. */
  async dropLogin({ id }: TakenLogin): Promise<void> {
    await this.#stored.logins.remove(id);
  }

  /** The client that was registered at this issuer for this address. */
  async findClient(issuer: string, redirectUrl: string): Promise<RegisteredClient | undefined> {
    const found = await this.#stored.clients.get(this.#clientId(issuer, redirectUrl));
    return found && this.#open<RegisteredClient>(`mcp-client:${found.id}`, found.value.sealed);
  }

  async saveClient(issuer: string, redirectUrl: string, client: RegisteredClient): Promise<void> {
    const id = this.#clientId(issuer, redirectUrl);
    const sealed = await this.#sealing.seal(`mcp-client:${id}`, JSON.stringify(client));
    const { clients } = this.#stored;
    await clients.put(id, { server: this.#server, registeredAt: this.#clock.now(), sealed });
    const order = { by: "registeredAt", direction: "descending" } as const;
    const { items } = await clients.query({ where: { server: this.#server }, order, limit: MOST_CLIENTS + PAGE });
    for (const { id: old } of items.slice(MOST_CLIENTS)) await clients.remove(old);
  }

  /** The service does not know it any more. */
  async removeClient(issuer: string, redirectUrl: string): Promise<void> {
    await this.#stored.clients.remove(this.#clientId(issuer, redirectUrl));
  }

  /** Remove begun connections that were not finished in time. */
  async removeExpired(): Promise<void> {
    const now = this.#clock.now();
    const order = { by: "expiresAt", direction: "ascending" } as const;
    const { items } = await this.#stored.logins.query({ order, limit: 100 });
    for (const { id, value } of items) if (value.expiresAt <= now) await this.#stored.logins.remove(id);
  }

  /** Seal the grants and clients again that were sealed with an earlier key of the instance. */
  async sealAgain(closing: AbortSignal): Promise<void> {
    const { grants, clients } = this.#stored;
    const isOther = ({ server }: { readonly server: string }) => server !== this.#server;
    // A write would refuse the new tokens of a renewal. They are sealed with the present key.
    const isRenewing = ({ renewingUntil = 0 }: StoredGrant) => renewingUntil > this.#clock.now();
    const sealing = this.#sealing;
    const leavesOut = (grant: StoredGrant) => isOther(grant) || isRenewing(grant);
    await sealAgain({ collection: grants, contextOf: (id) => `mcp-grant:${id}`, leavesOut }, sealing, closing);
    await sealAgain({ collection: clients, contextOf: (id) => `mcp-client:${id}`, leavesOut: isOther }, sealing, closing);
  }

  #idOf(userId: string | undefined): string {
    return userId === undefined ? this.#server : `${this.#server}/${hashed(userId)}`;
  }

  #ownerOf({ userId, by }: LoginOwner): string {
    return hashed(JSON.stringify([this.#server, userId, by]));
  }

  #clientId(issuer: string, redirectUrl: string): string {
    return `${this.#server}/${hashed(JSON.stringify([issuer, redirectUrl]))}`;
  }

  async #open<T>(context: string, sealed: string): Promise<T | undefined> {
    try {
      return JSON.parse(await this.#sealing.open(context, sealed)) as T;
    } catch (error) {
      if (error instanceof ports.SealBroken) return undefined;
      throw error;
    }
  }
}

function hashed(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
