import { hash } from "node:crypto";
import type { ChatDialect } from "../../ports/models.ts";

/** Ids of calls that are unique in a conversation, and the results that belong to them. */
export class CallIds {
  readonly #form: ChatDialect["toolIds"];
  readonly #most: number;
  /** By the caller's id: the calls of the last message that used it, and how many results they have. */
  readonly #rounds = new Map<string, { readonly message: number; readonly ids: string[]; answered: number; calls: number }>();
  readonly #used = new Set<string>();
  #message = 0;

  constructor(form: ChatDialect["toolIds"], most: number) {
    this.#form = form;
    this.#most = most;
  }

  /** The next message of the assistant begins. */
  next(): void {
    this.#message += 1;
  }

  /** Models and servers repeat an id in one answer or in later rounds: HKUDS/nanobot#4473, QwenLM/qwen-code#8382. */
  called(id: unknown): unknown {
    if (typeof id !== "string") return id;
    const known = this.#rounds.get(id);
    const message = this.#message;
    const round = known?.message === message ? known : { message, ids: [], answered: 0, calls: known?.calls ?? 0 };
    let fitted;
    do fitted = this.#idOf(id, round.calls++);
    while (this.#used.has(fitted));
    this.#used.add(fitted);
    round.ids.push(fitted);
    this.#rounds.set(id, round);
    return fitted;
  }

  answered(id: unknown): unknown {
    if (typeof id !== "string") return id;
    const round = this.#rounds.get(id);
    if (!round) return this.#idOf(id, 0);
    const answer = round.ids[Math.min(round.answered, round.ids.length - 1)];
    round.answered += 1;
    return answer;
  }

  #idOf(id: string, before: number): string {
    const key = before === 0 ? id : `${id}\n${before}`;
    // Mistral: "Tool call id … must be a-z, A-Z, 0-9, with a length of 9" (langchain-ai/langchain#37756).
    if (this.#form === "nine") return before === 0 && /^[a-zA-Z0-9]{9}$/.test(id) ? id : hash("sha256", key, "hex").slice(0, 9);
    const isValid = before === 0 && id.length <= this.#most && /^[a-zA-Z0-9_-]+$/.test(id);
    return isValid ? id : `call_${hash("sha256", key, "hex").slice(0, 24)}`;
  }
}
