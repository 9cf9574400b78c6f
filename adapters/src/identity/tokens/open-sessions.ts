import type { ports, SignedTokens } from "@portico/core";

/** The properties of a session. Its other properties are those of its owner. */
export type SessionFacts = Required<Pick<ports.Caller, "tokenId" | "ended">>;

interface OpenSession {
  readonly facts: SessionFacts;
  readonly ending: AbortController;
  readonly timer: ports.Timer;
}

/** The sessions that were presented to this process and have not expired. Long connections end with their session. */
export class OpenSessions {
  readonly #signed: SignedTokens;
  readonly #clock: ports.Clock;
  /** By token ID. The instance issued each of them, so callers cannot add any. */
  readonly #open = new Map<string, OpenSession>();

  constructor(signed: SignedTokens, clock: ports.Clock) {
    this.#signed = signed;
    this.#clock = clock;
  }

  /** Undefined for any text that is no valid session. */
  async find(presented: string): Promise<SessionFacts | undefined> {
    const token = await this.#signed.read(presented);
    if (!token) return undefined;
    const known = this.#open.get(token.tokenId);
    if (known) return known.facts;
    const ending = new AbortController();
    const facts = { tokenId: token.tokenId, ended: ending.signal };
    const timer = this.#clock.after(token.expiresAt - this.#clock.now(), () => {
      this.#open.delete(token.tokenId);
      ending.abort();
    });
    this.#open.set(token.tokenId, { facts, ending, timer });
    return facts;
  }

  /** End what the sessions opened. A session that is still valid may be presented again. */
  end(): void {
    const all = [...this.#open.values()];
    this.#open.clear();
    for (const { timer, ending } of all) {
      timer.cancel();
      ending.abort();
    }
  }
}
