import {
  auditActor,
  auditWriter,
  createEndedSessions,
  createInstanceSessions,
  definePlugin,
  instanceScheme,
  isOriginAllowed,
  optional,
  ports,
  type RequestHead,
  ServiceError,
} from "@portico/core";
import * as v from "valibot";
import { signInContract, signInErrors } from "./sign-in-contract.ts";
import { createSignInLinks } from "./sign-in-links.ts";

export { createSignInLinks, type SignInLink, type SignInLinks } from "./sign-in-links.ts";

/** The plugin's name. */
export const SIGN_IN = "sign-in";

/**
 * Wrong codes that one process answers with 401 within `WRONG_CODES_MS`. Further wrong ones get 429, so that programs that repeat a code slow
 * down, and alerts see guesses. A right code is never refused: otherwise any caller could keep the owner out. 256 random bits protect a
 * code against guesses.
 */
export const WRONG_CODES = 20;
const WRONG_CODES_MS = 60_000;

const config = v.strictObject({
  /**
   * Origins of the service's own pages, in addition to the host that a request names: of its public address, if a reverse proxy changes the
   * `Host` header.
   */
  ownOrigins: v.optional(v.array(v.string()), []),
});

/**
 * Links that sign the instance's first owner in to the web console, without typing a token. Needs an adapter of `identity` that accepts
 * sessions, such as `tokenIdentity({ tokens, sessions: true })`.
 */
export const signIn = definePlugin({
  name: SIGN_IN,
  summary: "Links that sign the instance's owner in to the web console.",
  config,
  needs: {
    records: ports.records,
    secrets: ports.secrets,
    identity: ports.identity,
    signing: ports.signing,
    clock: ports.clock,
    ids: ports.ids,
    audit: optional(ports.audit),
  },
  contract: signInContract,
  security: {
    instanceToken: { ...instanceScheme, description: "The instance access token" },
    session: { ...instanceScheme, description: "The session of a sign-in link" },
  },
  guards: ({ identity, ...given }) => ({
    // Neither a session nor another owner's token: a session would prolong itself, and another owner would become the first one.
    async instanceToken(head, signal) {
      const token = head.header("x-agent-service-token") ?? "";
      const caller = await identity.resolve(token, signal);
      if (caller && (await identity.isInstanceToken(token, signal))) return caller;
      throw caller ? signInErrors.instance_token_required() : signInErrors.unauthorized();
    },
    async session(head, signal) {
      const token = head.header("x-agent-service-token") ?? "";
      const caller = await identity.resolve(token, signal);
      if (!caller) throw signInErrors.unauthorized();
      const session = await createInstanceSessions(given).read(token);
      if (!session) throw signInErrors.session_required();
      return { caller, session, token };
    },
  }),
  setup({ identity, ...given }, { ownOrigins }) {
    const links = createSignInLinks(given);
    const sessions = createInstanceSessions(given);
    const ended = createEndedSessions(given.records);
    const audit = auditWriter(given.audit, given.records);
    const noteWrongCode = createWrongCodes(given.clock);
    const refused = () => {
      const waitMs = noteWrongCode();
      if (waitMs === 0) return signInErrors.sign_in_link_invalid();
      return new ServiceError(signInErrors.too_many_attempts, { headers: { "retry-after": String(Math.ceil(waitMs / 1000)) } });
    };
    return {
      issueLink: ({ who, head }) => links.issue(auditActor(who, head)),
      async signIn({ head, body, fail, signal }) {
        if (!isOwnPage(head, ownOrigins)) throw fail.origin_not_allowed();
        // Before a session is made: a wrong code costs a digest and one read.
        if (!(await links.isValid(body.code))) throw refused();
        // Before the code is used up, so that it can be tried again.
        const { token, tokenId, expiresAt } = await sessions.issue().catch((error: unknown) => {
          throw error instanceof ports.SigningUnavailable ? fail.sign_in_unavailable(undefined, undefined, error) : error;
        });
        // An adapter of `identity` that accepts no sessions would refuse the first call of the page.
        const caller = await identity.resolve(token.reveal(), signal);
        if (!caller) throw fail.sign_in_unavailable();
        const signedIn = { action: "session.open", object: tokenId, who: auditActor(caller, head) };
        if (!(await links.use(body.code, signedIn))) throw refused();
        return { token: token.reveal(), expiresAt: new Date(expiresAt).toISOString() };
      },
      async signOut({ who: { caller, session, token }, head, signal }) {
        await ended.sweep(given.clock.now());
        const fact = { action: "session.end", object: session.tokenId, who: auditActor(caller, head) };
        await audit.record(fact, [ended.write(session)]);
        // Connections to this process end at once.
        await identity.resolve(token, signal);
      },
    };
  },
});

/**
 * Whether a request comes from a page of the service itself, or from no web page. Pages of `allowedOrigins`, which the surface answers
 * otherwise, count as foreign. `Sec-Fetch-Site` is the browser's own word, which no page can set. Browsers leave it out of requests to
 * addresses without TLS: then the origin counts.
 */
function isOwnPage(head: RequestHead, ownOrigins: readonly string[]): boolean {
  const site = head.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin") return false;
  return isOriginAllowed({ origin: head.header("origin"), host: head.header("host") }, ownOrigins);
}

/**
 * Counts the wrong codes of all callers of one process: behind a reverse proxy, callers may have the same address. The function notes a wrong
 * code, and returns the milliseconds until its caller should try again, or 0 if there were only a few.
 */
function createWrongCodes(clock: ports.Clock): () => number {
  let count = 0;
  let endsAt = 0;
  return () => {
    const now = clock.now();
    if (now >= endsAt) {
      count = 0;
      endsAt = now + WRONG_CODES_MS;
    }
    count++;
    return count > WRONG_CODES ? endsAt - now : 0;
  };
}
