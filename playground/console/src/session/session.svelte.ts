import { CallFailed } from "@portico/core/client";
import { describeFailure } from "../api/describe-failure.ts";
import { type Instance, openInstance } from "../api/instance.ts";

/** Where the token is kept until the tab is closed, by whoever asked for that. It is never put into a URL. */
const KEPT = "portico.console.token";

/** Who is signed in. The token is in memory alone, unless `keep` was asked for. */
class Session {
  instance = $state.raw<Instance>();
  /** Why there is nobody, where that is worth a sentence. */
  notice = $state<string>();
  /** A kept token is being tried. */
  isResuming = $state(false);

  /** Answers what is wrong with the token, or undefined. */
  async signIn(token: string, { keep = false }: { readonly keep?: boolean } = {}): Promise<string | undefined> {
    try {
      let own: Instance | undefined;
      // An answer to a session that is over says nothing about the one that followed it.
      own = await openInstance(token, () => own !== undefined && own === this.instance && this.#refused());
      this.instance = own;
      this.notice = undefined;
    } catch (error) {
      if (CallFailed.is(error) && error.status === 401) return "This token is not accepted here.";
      return `${describeFailure(error)}.`;
    }
    if (keep) sessionStorage.setItem(KEPT, token);
    return undefined;
  }

  /** With the token of before the page was loaded again, where one was kept. */
  async resume(): Promise<void> {
    const token = sessionStorage.getItem(KEPT);
    if (token === null) return;
    this.isResuming = true;
    const problem = await this.signIn(token);
    if (problem !== undefined) await this.#end(problem);
    this.isResuming = false;
  }

  async signOut(): Promise<void> {
    await this.#end(undefined);
  }

  #refused(): void {
    void this.#end("The token is no longer accepted. Sign in again.");
  }

  async #end(notice: string | undefined): Promise<void> {
    const { instance } = this;
    sessionStorage.removeItem(KEPT);
    this.instance = undefined;
    this.notice = notice;
    await instance?.close();
  }
}

export const session = new Session();
