import { CallFailed, type Client, createClient } from "@portico/core/client";
import type { Contract } from "@portico/core/contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { PageFailure } from "./page-failure.ts";
import { pagePace } from "./page-pace.ts";

/** Issues a token of the workflow service to the signed-in user. */
export type IssueServiceToken = () => Promise<string>;

/** How long an issued token is used, by the page's own clock. Shorter than its lifetime, which is ten minutes by the service's clock. */
const USED_MS = 5 * 60_000;

/**
 * The workflow service, which has its own address and token. The agent service issues short-lived tokens of it to an owner. Other users are
 * asked for a token. Deployments may use one token for both services, so their token of the agent service is tried first.
 */
export class WorkflowService {
  /** Undefined if this process has no workflow service. */
  readonly url: string | undefined;
  /** `asked`: the user has to give the token. */
  state = $state<"unopened" | "asked" | "open">("unopened");
  readonly #agentToken: string;
  readonly #issue: IssueServiceToken | undefined;
  /** Given by the user. */
  #typed: string | undefined;
  #issued: Promise<IssuedToken> | undefined;

  /** `issue`: undefined for users to whom the agent service issues no token. */
  constructor(url: string | undefined, agentToken: string, issue: IssueServiceToken | undefined) {
    this.url = url;
    this.#agentToken = agentToken;
    this.#issue = issue;
  }

  /** Whether the user's sign-in opens the workflow service, too. */
  get isIncluded(): boolean {
    return this.url !== undefined && this.#issue !== undefined;
  }

  /**
   * Try a token. Default: one that the agent service issues. Returns whether the service accepts it. Throws if a service cannot be reached.
   */
  async open(typed?: string): Promise<boolean> {
    if (this.state === "open") return true;
    this.#typed = typed;
    try {
      await this.client(workflowServiceContract).workflows();
      this.state = "open";
    } catch (error) {
      if (!CallFailed.is(error) || error.status !== 401) throw error;
      this.state = "asked";
    }
    return this.state === "open";
  }

  /** Typed calls of a contract of the workflow service. After a 401 the service has to be opened again. */
  client<C extends Contract>(contract: C): Client<C> {
    if (this.url === undefined) throw new PageFailure("This process has no workflow service");
    return createClient(contract, {
      baseURL: this.url,
      headers: async () => ({ "x-workflow-service-token": await this.#token() }),
      fetch: async (request) => {
        pagePace.requested();
        const response = await globalThis.fetch(request);
        if (response.status === 401) this.#refused();
        return response;
      },
    });
  }

  async #token(): Promise<string> {
    if (this.#typed !== undefined) return this.#typed;
    const issued = (this.#issued ??= this.#issueNext());
    const { token, endsAt } = await issued;
    if (Date.now() < endsAt) return token;
    // Several calls at the same time share the next token.
    if (this.#issued === issued) this.#issued = undefined;
    return this.#token();
  }

  async #issueNext(): Promise<IssuedToken> {
    try {
      if (!this.#issue) return { token: this.#agentToken, endsAt: Infinity };
      return { token: await this.#issue(), endsAt: Date.now() + USED_MS };
    } catch (error) {
      this.#issued = undefined;
      throw error;
    }
  }

  /** An issued token may have ended early, with the key of the instance: the next `open` tries another one. */
  #refused(): void {
    this.#issued = undefined;
    this.state = this.#typed === undefined ? "unopened" : "asked";
  }
}

interface IssuedToken {
  readonly token: string;
  /** When the page asks for the next one. */
  readonly endsAt: number;
}
