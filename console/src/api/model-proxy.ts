import { type Client, createClient } from "@portico/core/client";
import type { Contract } from "@portico/core/contract";
import { PageFailure } from "./page-failure.ts";
import { modelProxyContract } from "@portico/plugins/model-proxy/contract";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";

/** The label of tokens that the console issues for itself. */
const LABEL = "web console";

interface OwnToken {
  readonly tokenId: string;
  readonly token: string;
}

/** The model proxy, called with the console's own safe tokens: one per provider, from its first use to the end of the session. */
export class ModelProxy {
  /** Includes `/v1`. Undefined if this process has no model proxy. */
  readonly url: string | undefined;
  readonly #tokens: Client<typeof safeTokenContract>;
  readonly #own = new Map<string, Promise<OwnToken>>();

  constructor(url: string | undefined, client: <C extends Contract>(contract: C) => Client<C>) {
    this.url = url;
    this.#tokens = client(safeTokenContract);
  }

  /** A safe token of this provider. Throws CallFailed if none can be issued. */
  async token(providerId: string): Promise<string> {
    const issued = this.#own.get(providerId) ?? this.#tokens.issue({ body: { providerId, label: LABEL } });
    this.#own.set(providerId, issued);
    issued.catch(() => this.#own.delete(providerId));
    return (await issued).token;
  }

  /** The token was revoked. The next call issues another. */
  forget(): void {
    this.#own.clear();
  }

  /** Typed calls with a safe token. The two model calls return the whole Response. */
  client(token: string): Client<typeof modelProxyContract> {
    if (this.url === undefined) throw new PageFailure("This process has no model proxy");
    return createClient(modelProxyContract, {
      baseURL: new URL(this.url).origin,
      headers: { authorization: `Bearer ${token}` },
    });
  }

  /** Revokes the console's own tokens, if that is still possible. */
  async close(): Promise<void> {
    const own = [...this.#own.values()];
    this.#own.clear();
    await Promise.allSettled(own.map(async (issued) => this.#tokens.revoke({ params: { tokenId: (await issued).tokenId } })));
  }
}
