import { type AgentClient, type ConnectionState, connectAgent } from "@portico/client";
import type { Instance } from "../../api/instance.ts";
import { OutgoingFiles } from "./composer/outgoing-files.svelte.ts";
import { Chat } from "./conversation/chat.svelte.ts";
import { MediaLinks } from "./messages/media-links.ts";

/** The conversations of one session. Turns continue, and their events are received, while another page is shown. */
export class Chats {
  connection = $state<ConnectionState>("connecting");
  readonly client: AgentClient;
  readonly media: MediaLinks;
  readonly #instance: Instance;
  readonly #known = new Map<string, Chat>();
  /** The new conversation of each agent, without an ID yet, and the place that shows it. */
  readonly #fresh = new Map<string, { readonly chat: Chat; found: (chat: Chat) => void }>();

  constructor(instance: Instance) {
    const { baseURL, token, ended } = instance;
    this.#instance = instance;
    this.client = connectAgent({
      baseURL,
      token,
      fetch: (request) => instance.send(request),
      onConnection: (state) => (this.connection = state),
      // A person can ask again, and should not wait long for the choice.
      unknownMs: 3_000,
    });
    ended.addEventListener("abort", () => this.client.close(), { once: true });
    this.media = new MediaLinks(this.client);
  }

  /** The conversation with this ID, or the agent's new one. Each keeps its draft. `found` is called when the new one has an ID. */
  open(agentId: string, conversationId: string | undefined, found: (chat: Chat) => void): Chat {
    const known = conversationId === undefined ? undefined : this.#known.get(conversationId);
    if (known) return known;
    const fresh = conversationId === undefined ? this.#fresh.get(agentId) : undefined;
    if (fresh) {
      fresh.found = found;
      return fresh.chat;
    }
    const chat = new Chat({
      client: this.client,
      agentId,
      conversationId,
      files: new OutgoingFiles(this.#instance),
      found: (begun) => {
        const shown = this.#fresh.get(agentId);
        this.#fresh.delete(agentId);
        this.#known.set(begun.conversationId!, begun);
        shown?.found(begun);
      },
    });
    if (conversationId === undefined) this.#fresh.set(agentId, { chat, found });
    else this.#known.set(conversationId, chat);
    return chat;
  }

  /** Forget a conversation that was cleared. */
  forget(chat: Chat): void {
    chat.files.close();
    if (chat.conversationId !== undefined) this.#known.delete(chat.conversationId);
  }
}

const opened = new WeakMap<Instance, Chats>();

/** The connection of this session. It is opened at the first use. */
export function chatsOf(instance: Instance): Chats {
  const chats = opened.get(instance) ?? new Chats(instance);
  opened.set(instance, chats);
  return chats;
}
