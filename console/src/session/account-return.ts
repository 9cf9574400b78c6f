/** The key in session storage, which keeps the name of the server while another site is shown in this tab. It holds no secret. */
const BEGUN = "portico.console.connecting";

/** How the person returned from the service at which an account is connected. */
export interface AccountReturn {
  /** The server whose account this tab was connecting. Undefined if this tab was connecting no account. */
  readonly sourceId: string | undefined;
  /** What the service sent along, as the call `finish` takes it (RFC 6749, 4.1.2; RFC 9207, 2). */
  readonly parameters: { readonly state: string; readonly code?: string; readonly iss?: string; readonly error?: string };
}

let received: AccountReturn | undefined;

/** Remembers which account is connected. To be called before the tab leaves the console. */
export function rememberConnecting(sourceId: string): void {
  sessionStorage.setItem(BEGUN, sourceId);
}

/**
 * Receives the parameters of a return, if the page was opened with them, and shows the page of accounts. The address bar and the history
 * of the tab no longer contain the parameters when this returns. They are only in memory, also until the user has signed in.
 */
export function receiveAccountReturn(): boolean {
  const given = new URLSearchParams(location.search);
  if (!given.has("code") && !given.has("error")) return false;
  history.replaceState(null, "", `${location.pathname}#/accounts`);
  const parameters = ["code", "iss", "error"].flatMap((name) => {
    const value = given.get(name);
    return value === null ? [] : [[name, value]];
  });
  const state = given.get("state");
  const sourceId = state === null ? undefined : (sessionStorage.getItem(BEGUN) ?? undefined);
  sessionStorage.removeItem(BEGUN);
  received = { sourceId, parameters: { state: state ?? "", ...Object.fromEntries(parameters) } };
  return true;
}

/** The return that was received. Answers it once, because its parameters are valid once. */
export function takeAccountReturn(): AccountReturn | undefined {
  const taken = received;
  received = undefined;
  return taken;
}
