import { CallFailed } from "@portico/core/client";
import { describeFailure } from "../api/describe-failure.ts";
import { type Instance, openInstance } from "../api/instance.ts";

/** The key in session storage, which keeps the token until the tab is closed, if the user asks for that. The token is never put into a URL. */
const KEPT = "portico.console.token";

/** The signed-in user. The token is only in memory, except with `keep`. */
class Session {
  instance = $state.raw<Instance>();
  /** Why no user is signed in, if an explanation is useful. */
  notice = $state<string>();
  /** A kept token is being tried. */
  isResuming = $state(false);

  /** Returns the problem with the token, or undefined. */
  async signIn(token: string, { keep = false }: { readonly keep?: boolean } = {}): Promise<string | undefined> {
    try {
      let own: Instance | undefined;
      // A response for an ended session says nothing about the next session.
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

  /** Signs in with the token that was kept before the page was reloaded, if there is one. */
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
