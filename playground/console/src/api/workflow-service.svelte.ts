import { CallFailed, type Client, createClient } from "@portico/core/client";
import type { Contract } from "@portico/core/contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";

/**
 * The workflow service, which has an address and a token of its own. Deployments may use one value for both services: the instance token is
 * tried before anybody is asked.
 */
export class WorkflowService {
  /** Undefined where this process has none. */
  readonly url: string | undefined;
  /** `asked`: the owner has to give the token. */
  state = $state<"unopened" | "asked" | "open">("unopened");
  readonly #instanceToken: string;
  #token = "";

  constructor(url: string | undefined, instanceToken: string) {
    this.url = url;
    this.#instanceToken = instanceToken;
  }

  /** Try a token; default: the instance's. Answers whether the service takes it; throws where it cannot be asked. */
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

  /** Typed calls of a contract of the workflow service. After a 401 the token is asked for again. */
  client<C extends Contract>(contract: C): Client<C> {
    if (this.url === undefined) throw new Error("This process has no workflow service");
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
