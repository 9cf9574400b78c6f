import { CallFailed, type Client, createClient } from "@portico/core/client";
import type { Contract } from "@portico/core/contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { PageFailure } from "./page-failure.ts";

/**
 * The workflow service, which has its own address and token. Deployments may use one token for both services, so the instance token is
 * tried before the owner is asked.
 */
export class WorkflowService {
  /** Undefined if this process has no workflow service. */
  readonly url: string | undefined;
  /** `asked`: the owner has to give the token. */
  state = $state<"unopened" | "asked" | "open">("unopened");
  readonly #instanceToken: string;
  #token = "";

  constructor(url: string | undefined, instanceToken: string) {
    this.url = url;
    this.#instanceToken = instanceToken;
  }

  /** Try a token. Default: the instance token. Returns whether the service accepts it. Throws if the service cannot be reached. */
  async open(token = this.#instanceToken): Promise<boolean> {
    if (this.state === "open") return true;
    this.#token = token;
    try {
      await this.client(workflowServiceContract).workflows();
      this.state = "open";
    } catch (error) {
      if (!CallFailed.is(error) || error.status !== 401) throw error;
      this.state = "asked";
    }
    return this.state === "open";
  }

  /** Typed calls of a contract of the workflow service. After a 401 the owner is asked for the token again. */
  client<C extends Contract>(contract: C): Client<C> {
    if (this.url === undefined) throw new PageFailure("This process has no workflow service");
    return createClient(contract, {
      baseURL: this.url,
      headers: () => ({ "x-workflow-service-token": this.#token }),
      fetch: async (request) => {
        const response = await globalThis.fetch(request);
        if (response.status === 401) this.state = "asked";
        return response;
      },
    });
  }
}
