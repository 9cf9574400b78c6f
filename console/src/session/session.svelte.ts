import { CallFailed, createClient } from "@portico/core/client";
import { signInContract } from "../../server/sign-in-contract.ts";
import { describeFailure } from "../api/describe-failure.ts";
import { type Instance, openInstance, ownAddress } from "../api/instance.ts";
import { toasts } from "../blocks/toasts.svelte.ts";

/** The key in session storage, which keeps the token until the tab is closed, if the user asks for that. The token is never put into a URL. */
const KEPT = "portico.console.token";

/** The signed-in user. The token is only in memory, except with `keep`. */
class Session {
  instance = $state.raw<Instance>();
  /** Why no user is signed in, if an explanation is useful. */
  notice = $state<string>();
  /** Whether the user came with a sign-in link that is used or expired. */
  hasStaleLink = $state(false);
  /** A kept token or a link is being tried. */
  isResuming = $state(false);

  /** Returns the problem with the token, or undefined. */
  async signIn(token: string, { keep = false }: { readonly keep?: boolean } = {}): Promise<string | undefined> {
    try {
      let own: Instance | undefined;
      // A response for an ended session says nothing about the next session.
      own = await openInstance(token, () => own !== undefined && own === this.instance && this.#refused(own));
      const earlier = this.instance;
      this.instance = own;
      this.notice = undefined;
      this.hasStaleLink = false;
      void earlier?.close();
    } catch (error) {
      if (CallFailed.is(error) && error.status === 401) return "This token is not accepted here.";
      return `${describeFailure(error)}.`;
    }
    if (keep) sessionStorage.setItem(KEPT, token);
    return undefined;
  }

  /** Whether a reload, or the return from another site, needs no sign-in. */
  get isKept(): boolean {
    return sessionStorage.getItem(KEPT) !== null;
  }

  /** Signs in with the token that was kept before the page was reloaded. Without one, shows the notice. */
  async resume(notice?: string): Promise<void> {
    const token = sessionStorage.getItem(KEPT);
    if (token === null) {
      this.notice = notice;
      return;
    }
    this.isResuming = true;
    const problem = await this.signIn(token);
    if (problem !== undefined) await this.#end(problem);
    this.isResuming = false;
  }

  /** Signs in with the code of a sign-in link. A session that is already open stays if the link does not work. */
  async signInWithLink(code: string): Promise<void> {
    this.isResuming = true;
    try {
      const { token } = await createClient(signInContract, { baseURL: ownAddress() }).signIn({ body: { code } });
      // Kept, because the link works only once: otherwise a reload would need another one.
      this.notice = await this.signIn(token, { keep: true });
    } catch (error) {
      const isStale = CallFailed.is(error) && error.code === "sign_in_link_invalid";
      if (this.instance) toasts.say(isStale ? "This sign-in link no longer works" : describeFailure(error), "bad");
      else {
        this.hasStaleLink = isStale;
        this.notice = isStale ? undefined : `${describeFailure(error)}.`;
      }
    }
    this.isResuming = false;
  }

  /** Ends the session at the service, too. Without an answer, it ends there when it expires. */
  async signOut(): Promise<void> {
    const { instance } = this;
    await this.#end(undefined);
    if (instance?.isSession)
      await instance
        .client(signInContract)
        .signOut()
        .catch(() => {});
  }

  #refused({ isSession }: Instance): void {
    void this.#end(isSession ? "The session has ended. Sign in again." : "The token is no longer accepted. Sign in again.");
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
