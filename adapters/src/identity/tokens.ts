import { defineAdapter, ports, type Secret } from "@portico/core";

/** Options of `tokenIdentity`. */
export interface TokenIdentityOptions {
  /**
   * All tokens, or a function that returns them when the adapter opens, for example with one that the instance made at its first
   * start.
   */
  readonly tokens: readonly TokenHolder[] | ((secrets: ports.Secrets) => Promise<readonly TokenHolder[]>);
}

/** A token and its holder (open points 1). One user may hold several tokens. */
export interface TokenHolder {
  readonly token: Secret;
  /** Required for `owner` and `member`. Role `service` has no user. */
  readonly userId?: string;
  readonly role: ports.Role;
}

/**
 * Identity by a list of tokens that is fixed while the app is open. After opening, only digests are kept. Opening throws
 * TypeError with a sentence for each fault: no token, a repeated token, a missing user, or a user for role `service`.
 */
export const tokenIdentity = defineAdapter({
  name: "identity/tokens",
  port: ports.identity,
  needs: { secrets: ports.secrets },
  open: async ({ secrets }, { tokens }: TokenIdentityOptions) =>
    createTokenIdentity(secrets, typeof tokens === "function" ? await tokens(secrets) : tokens),
});

const ROLES: readonly ports.Role[] = ["owner", "member", "service"];

function createTokenIdentity(secrets: ports.Secrets, tokens: readonly TokenHolder[]): ports.Identity {
  const digests = tokens.map(({ token }) => secrets.digest(token.reveal()));
  const faults = tokens.flatMap((holder, at) => faultsOf(holder, at, digests));
  if (faults.length > 0) throw new TypeError(faults.join("\n"));
  const holders = tokens.map(({ userId, role }, at) => ({ digest: digests[at] ?? "", caller: { userId, role } }));

  const instance = holders.find(({ caller }) => caller.role === "owner");

  /**
   * Under load, many requests with one token arrive in one turn of the event loop: they share one lookup. The cache ends with the
   * turn.
   */
  const ofThisTurn = new Map<string, ports.Caller | undefined>();

  return {
    async resolve(token, signal) {
      signal?.throwIfAborted();
      if (ofThisTurn.has(token)) return ofThisTurn.get(token);
      let caller: ports.Caller | undefined;
      // Always checks all holders: the duration does not reveal which one matched.
      for (const holder of holders) {
        if (secrets.matches(token, holder.digest)) caller = holder.caller;
      }
      if (ofThisTurn.size === 0) setImmediate(() => ofThisTurn.clear());
      ofThisTurn.set(token, caller);
      return caller;
    },
    async isInstanceToken(token, signal) {
      signal?.throwIfAborted();
      return instance !== undefined && secrets.matches(token, instance.digest);
    },
    async instanceOwner(signal) {
      signal?.throwIfAborted();
      return instance?.caller.userId;
    },
  };
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
