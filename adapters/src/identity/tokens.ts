import { defineAdapter, ports, type Secret } from "@portico/core";

export interface TokenIdentityOptions {
  readonly tokens: readonly TokenHolder[];
}

/** A token and who holds it (open points 1). One user may hold several. */
export interface TokenHolder {
  readonly token: Secret;
  /** Needed by `owner` and `member`; role `service` is no user and has none. */
  readonly userId?: string;
  readonly role: ports.Role;
}

/**
 * Identity by a fixed list of tokens. After opening it keeps digests alone. Opening throws TypeError with a sentence for each
 * fault: no token, a repeated one, a role without its user or with one too many.
 */
export const tokenIdentity = defineAdapter({
  name: "identity/tokens",
  port: ports.identity,
  needs: { secrets: ports.secrets },
  open: ({ secrets }, options: TokenIdentityOptions) => createTokenIdentity(secrets, options.tokens),
});

const ROLES: readonly ports.Role[] = ["owner", "member", "service"];

function createTokenIdentity(secrets: ports.Secrets, tokens: readonly TokenHolder[]): ports.Identity {
  const digests = tokens.map(({ token }) => secrets.digest(token.reveal()));
  const faults = tokens.flatMap((holder, at) => faultsOf(holder, at, digests));
  if (faults.length > 0) throw new TypeError(faults.join("\n"));
  const holders = tokens.map(({ userId, role }, at) => ({ digest: digests[at] ?? "", caller: { userId, role } }));

  const instance = holders.find(({ caller }) => caller.role === "owner");

  /** Under load many requests with one token arrive in one turn of the event loop: they share one look. Nothing is kept beyond the turn. */
  const ofThisTurn = new Map<string, ports.Caller | undefined>();

  return {
    async resolve(token, signal) {
      signal?.throwIfAborted();
      if (ofThisTurn.has(token)) return ofThisTurn.get(token);
      let caller: ports.Caller | undefined;
      // To the end, also when it is found: how long it takes says nothing about which one it was.
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

/** Tokens are named by their place in the list: their values are in no message. */
function faultsOf({ token, userId, role }: TokenHolder, at: number, digests: readonly string[]): readonly string[] {
  const faults: string[] = [];
  const first = digests.indexOf(digests[at] ?? "");
  if (token.reveal() === "") faults.push(`tokens[${at}] is empty.`);
  else if (first < at) faults.push(`tokens[${at}] repeats the value of tokens[${first}]: a token has one holder.`);
  if (!ROLES.includes(role)) faults.push(`tokens[${at}] has no role: owner, member or service.`);
  else if (role === "service" && userId !== undefined)
    faults.push(`tokens[${at}] has role service, which is no user, and a userId.`);
  else if (role !== "service" && !userId) faults.push(`tokens[${at}] has role ${role} and needs a userId.`);
  return faults;
}
