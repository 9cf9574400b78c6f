import type { AuthProvider, FetchLike } from "@modelcontextprotocol/client";
import type { SentToken } from "../../mcp-authorization.ts";

/** Gives the token for a request of a session. `refused`: a token that the server did not accept. */
export type TokenSource = (refused?: string) => Promise<SentToken>;

/** Thrown when a session began with an earlier account of its server: a new session is needed. The request was not sent. */
export class AccountChanged extends Error {
  override readonly name = "AccountChanged";
}

const BEARER = "Bearer ";

/** The access of one session: what its transport asks for tokens, and its requests, which note the refused ones. */
export function sessionAccess(
  tokens: TokenSource,
  ask: FetchLike,
): { readonly authProvider: AuthProvider; readonly ask: FetchLike } {
  const refused = new WeakMap<Response, string>();
  let last: SentToken | undefined;
  const next = async (not?: string): Promise<string> => {
    const given = await tokens(not);
    // The session of a server belongs to the account with which it began.
    if (last && last.connectedAt !== given.connectedAt) throw new AccountChanged("The server has another account now");
    last = given;
    return given.token;
  };
  return {
    authProvider: {
      token: () => next(),
      onUnauthorized: async ({ response }) => void (await next(refused.get(response) ?? last?.token)),
    },
    async ask(url, init) {
      const response = await ask(url, init);
      const sent = new Headers(init?.headers).get("authorization");
      if (response.status === 401 && sent?.startsWith(BEARER)) refused.set(response, sent.slice(BEARER.length));
      return response;
    },
  };
}
