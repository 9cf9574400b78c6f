import type { AgentClient } from "@portico/client";

/** A link that expires sooner is not used any more. */
const MARGIN_MS = 30_000;
/** Maximum number of links that the service signs in one call. */
const MOST_SIGNED = 100;

interface Link {
  readonly url: string;
  readonly expiresAt: number;
}

/** Links to media, valid for five minutes. Links that are needed at the same time are signed in one call. Old links are signed again. */
export class MediaLinks {
  readonly #client: AgentClient;
  readonly #links = new Map<string, Promise<Link | undefined>>();
  #wanted = new Map<string, PromiseWithResolvers<Link | undefined>>();

  constructor(client: AgentClient) {
    this.#client = client;
  }

  /** Undefined for missing media. `isNew`: the previous link was refused. Rejects like every call. */
  async link(mediaId: string, { isNew = false }: { readonly isNew?: boolean } = {}): Promise<string | undefined> {
    const known = isNew ? undefined : await this.#links.get(mediaId)?.catch(() => undefined);
    if (known && known.expiresAt - Date.now() > MARGIN_MS) return known.url;
    const signed = this.#sign(mediaId);
    this.#links.set(mediaId, signed);
    return (await signed)?.url;
  }

  #sign(mediaId: string): Promise<Link | undefined> {
    if (this.#wanted.size === 0) queueMicrotask(() => this.#ask());
    const asked = this.#wanted.get(mediaId) ?? Promise.withResolvers<Link | undefined>();
    this.#wanted.set(mediaId, asked);
    return asked.promise;
  }

  #ask(): void {
    const wanted = [...this.#wanted];
    this.#wanted = new Map();
    for (let from = 0; from < wanted.length; from += MOST_SIGNED) void this.#askFor(wanted.slice(from, from + MOST_SIGNED));
  }

  async #askFor(wanted: readonly (readonly [string, PromiseWithResolvers<Link | undefined>])[]): Promise<void> {
    try {
      const { items } = await this.#client.mediaLinks(wanted.map(([mediaId]) => mediaId));
      const links = new Map(items.map(({ mediaId, url, expiresAt }) => [mediaId, { url, expiresAt: Date.parse(expiresAt) }]));
      for (const [mediaId, { resolve }] of wanted) resolve(links.get(mediaId));
    } catch (error) {
      for (const [, { reject }] of wanted) reject(error);
    }
  }
}
