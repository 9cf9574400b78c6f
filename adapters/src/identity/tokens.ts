import { OpenSessions } from "./tokens/open-sessions.ts";
import {
  createEndedSessions,
  createInstanceSessions,
  createSystemClock,
  defineAdapter,
  type Live,
  optional,
  Overlap,
  ports,
  type Scope,
  type Secret,
} from "@portico/core";

/** Options of `tokenIdentity`. */
export interface TokenIdentityOptions {
  /**
   * All tokens, or a function that returns them when the adapter opens, for example with one that the instance made at its first
   * start.
   */
  readonly tokens: TokenList;
  /** The next lists of tokens, while the app is open. Default: the tokens never change. */
  readonly rotation?: Live<TokenRotation> | undefined;
  /**
   * Whether a session of the first owner, which the plugin `sign-in` opens, is accepted like a token of this owner. Without
   * adapters of `signing` and `ids`, no session is accepted. Without an adapter of `records`, a session cannot be ended early. Default:
   * false.
   */
  readonly sessions?: boolean;
}

/** A list of tokens, or a function that returns it. */
export type TokenList = readonly TokenHolder[] | ((secrets: ports.Secrets) => Promise<readonly TokenHolder[]>);

/** The list that replaces an earlier one. A list with a fault is refused, as when the adapter opens. */
export interface TokenRotation {
  readonly tokens: TokenList;
  /** How long the tokens that the new list does not have stay valid, in milliseconds. */
  readonly overlapMs: number;
}

/** A token and its holder (open points 1). One user may hold several tokens. */
export interface TokenHolder {
  readonly token: Secret;
  /** Required for `owner` and `member`. Role `service` has no user. */
  readonly userId?: string;
  readonly role: ports.Role;
}

/**
 * Identity by a list of tokens. After opening, only digests are kept. Opening throws TypeError with a sentence for each fault: no
 * token, a repeated token, a missing user, or a user for role `service`. A token that a later list gives to another holder
 * belongs to that holder at once.
 */
export const tokenIdentity = defineAdapter({
  name: "identity/tokens",
  port: ports.identity,
  // Sessions need signing and ids, and records to be ended early.
  needs: {
    secrets: ports.secrets,
    clock: optional(ports.clock),
    signing: optional(ports.signing),
    ids: optional(ports.ids),
    records: optional(ports.records),
  },
  async open(
    { secrets, clock = createSystemClock(), signing, ids, records },
    { tokens, rotation, sessions }: TokenIdentityOptions,
    scope,
  ) {
    const signed = sessions && signing && ids ? createInstanceSessions({ signing, clock, ids }) : undefined;
    const open = signed && new OpenSessions(signed, clock, records && createEndedSessions(records));
    const identity = new TokenIdentity(secrets, clock, await readHolders(secrets, tokens), open);
    scope.onClose(() => identity.close());
    if (rotation) follow(identity, secrets, rotation, scope);
    return identity;
  },
});

const ROLES: readonly ports.Role[] = ["owner", "member", "service"];
/** Enough to tell the tokens of an instance apart, and too little to find a token with. */
const TOKEN_ID_CHARACTERS = 8;

interface Holder {
  readonly digest: string;
  readonly caller: ports.Caller;
  readonly ending: AbortController;
}

function follow(identity: TokenIdentity, secrets: ports.Secrets, rotation: Live<TokenRotation>, scope: Scope): void {
  scope.onClose(
    rotation.follow(async ({ tokens, overlapMs }) => {
      const holders = await readHolders(secrets, tokens);
      return () => identity.replace(holders, overlapMs);
    }),
  );
}

class TokenIdentity implements ports.Identity {
  readonly #secrets: ports.Secrets;
  readonly #lists: Overlap<readonly Holder[]>;
  /** The valid holders: for each token, the one of the newest list that has it. */
  #holders: readonly Holder[];
  /**
   * Under load, many requests with one token arrive in one turn of the event loop: they share one lookup. The cache ends with the
   * turn.
   */
  readonly #ofThisTurn = new Map<string, ports.Caller | undefined>();
  readonly #sessions: OpenSessions | undefined;

  constructor(secrets: ports.Secrets, clock: ports.Clock, holders: readonly Holder[], sessions: OpenSessions | undefined) {
    this.#secrets = secrets;
    this.#sessions = sessions;
    this.#holders = holders;
    this.#lists = new Overlap(holders, { clock, isSame: isSameList, changed: () => this.#settle() });
  }

  async resolve(token: string, signal?: AbortSignal): Promise<ports.Caller | undefined> {
    signal?.throwIfAborted();
    if (this.#ofThisTurn.has(token)) return this.#ofThisTurn.get(token);
    let caller: ports.Caller | undefined;
    // Always checks all holders: the duration does not reveal which one matched.
    for (const holder of this.#holders) {
      if (this.#secrets.matches(token, holder.digest)) caller = holder.caller;
    }
    // Not kept: a rotation may happen while it is read.
    if (caller === undefined && this.#sessions) return this.#sessionOwner(token);
    if (this.#ofThisTurn.size === 0) setImmediate(() => this.#ofThisTurn.clear());
    this.#ofThisTurn.set(token, caller);
    return caller;
  }

  async #sessionOwner(token: string): Promise<ports.Caller | undefined> {
    const session = await this.#sessions?.find(token);
    const owner = session && instanceOf(this.#lists.current);
    return owner && { ...owner.caller, ...session };
  }

  async isInstanceToken(token: string, signal?: AbortSignal): Promise<boolean> {
    signal?.throwIfAborted();
    let isInstance = false;
    for (const holders of this.#lists.all) {
      const instance = instanceOf(holders);
      // A holder that is not valid any more has been given to another user.
      if (instance && this.#holders.includes(instance) && this.#secrets.matches(token, instance.digest)) isInstance = true;
    }
    return isInstance;
  }

  async instanceOwner(signal?: AbortSignal): Promise<string | undefined> {
    signal?.throwIfAborted();
    return instanceOf(this.#lists.current)?.caller.userId;
  }

  /** The tokens that only earlier lists have end after `overlapMs`. */
  replace(holders: readonly Holder[], overlapMs: number): void {
    // A token that stays with its holder keeps its signal.
    const kept = holders.map((holder) => this.#holders.find((known) => isSameHolder(known, holder)) ?? holder);
    this.#lists.replace(kept, overlapMs);
  }

  close(): void {
    this.#lists.close();
    this.#sessions?.end();
  }

  #settle(): void {
    const before = this.#holders;
    const newest = new Map(this.#lists.all.flat().map((holder) => [holder.digest, holder]));
    this.#holders = [...newest.values()];
    this.#ofThisTurn.clear();
    // Their key may have ended with a token. Clients of sessions that are still valid connect again.
    this.#sessions?.end();
    for (const holder of before) if (newest.get(holder.digest) !== holder) holder.ending.abort();
  }
}

function instanceOf(holders: readonly Holder[]): Holder | undefined {
  return holders.find(({ caller }) => caller.role === "owner");
}

function isSameHolder(one: Holder, other: Holder): boolean {
  return one.digest === other.digest && one.caller.userId === other.caller.userId && one.caller.role === other.caller.role;
}

/** The order counts: the first owner's token is the instance access token. */
function isSameList(one: readonly Holder[], other: readonly Holder[]): boolean {
  return one.length === other.length && one.every((holder, at) => isSameHolder(holder, other[at]!));
}

async function readHolders(secrets: ports.Secrets, list: TokenList): Promise<readonly Holder[]> {
  const tokens = typeof list === "function" ? await list(secrets) : list;
  const digests = tokens.map(({ token }) => secrets.digest(token.reveal()));
  const faults = tokens.flatMap((holder, at) => faultsOf(holder, at, digests));
  if (faults.length > 0) throw new TypeError(faults.join("\n"));
  return tokens.map(({ userId, role }, at) => {
    const digest = digests[at] ?? "";
    const ending = new AbortController();
    // Of the digest and not of the token: a part of the stored digest would say more about a token that people chose.
    const tokenId = `token_${secrets.digest(`token id ${digest}`).slice(0, TOKEN_ID_CHARACTERS)}`;
    return { digest, ending, caller: { userId, role, tokenId, ended: ending.signal } };
  });
}

/** Messages name tokens by their place in the list, never by value. */
function faultsOf({ token, userId, role }: TokenHolder, at: number, digests: readonly string[]): readonly string[] {
  const faults: string[] = [];
  const first = digests.indexOf(digests[at] ?? "");
  if (token.reveal() === "") faults.push(`tokens[${at}] is empty.`);
  else if (first < at) faults.push(`tokens[${at}] repeats the value of tokens[${first}]: a token has one holder.`);
  if (!ROLES.includes(role)) faults.push(`tokens[${at}] has no role: owner, member or service.`);
  else if (role === "service" && userId !== undefined)
    faults.push(`tokens[${at}] has role service, which has no user, and a userId.`);
  else if (role !== "service" && !userId) faults.push(`tokens[${at}] has role ${role} and needs a userId.`);
  return faults;
}
