import type { EndedSessions, ports, SignedTokens } from "@portico/core";

/** The properties of a session. Its other properties are those of its owner. */
export type SessionFacts = Required<Pick<ports.Caller, "tokenId" | "ended" | "expiresAt">>;

/** After this time at most, a session that was ended through another process ends its connections to this one. */
const LOOK_MS = 10_000;

interface OpenSession {
  readonly facts: SessionFacts;
  readonly ending: AbortController;
  readonly timer: ports.Timer;
}

/** The sessions that were presented to this process and have not expired. Long connections end with their session. */
export class OpenSessions {
  readonly #signed: SignedTokens;
  readonly #clock: ports.Clock;
  readonly #ended: EndedSessions | undefined;
  /** By token ID. The instance issued each of them, so callers cannot add any. */
  readonly #open = new Map<string, OpenSession>();
  #looking: ports.Timer | undefined;

  constructor(signed: SignedTokens, clock: ports.Clock, ended: EndedSessions | undefined) {
    this.#ended = ended;
    this.#signed = signed;
    this.#clock = clock;
  }

  /** Undefined for any text that is no valid session. Throws RecordsUnavailable. */
  async find(presented: string): Promise<SessionFacts | undefined> {
    const token = await this.#signed.read(presented);
    if (!token) return undefined;
    if (await this.#ended?.has(token.tokenId)) {
      this.#close(token.tokenId);
      return undefined;
    }
    const known = this.#open.get(token.tokenId);
    if (known) return known.facts;
    const ending = new AbortController();
    const { tokenId, expiresAt } = token;
    const facts = { tokenId, expiresAt, ended: ending.signal };
    const timer = this.#clock.after(expiresAt - this.#clock.now(), () => this.#close(tokenId));
    this.#open.set(tokenId, { facts, ending, timer });
    this.#lookLater();
    return facts;
  }

  /** End what the sessions opened. A session that is still valid may be presented again. */
  end(): void {
    this.#looking?.cancel();
    this.#looking = undefined;
    for (const tokenId of [...this.#open.keys()]) this.#close(tokenId);
  }

  #close(tokenId: string): void {
    const session = this.#open.get(tokenId);
    this.#open.delete(tokenId);
    session?.timer.cancel();
    session?.ending.abort();
  }

  #lookLater(): void {
    if (!this.#ended || this.#open.size === 0) return;
    this.#looking ??= this.#clock.after(LOOK_MS, () => {
      this.#looking = undefined;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    for (const tokenId of [...this.#open.keys()]) {
      // A session whose state cannot be read now is looked at again.
      if (await this.#ended?.has(tokenId).catch(() => false)) this.#close(tokenId);
    }
    this.#lookLater();
  }
}
