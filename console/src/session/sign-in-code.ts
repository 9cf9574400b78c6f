/**
 * The code of a sign-in link, or undefined if the page was opened in another way. The address bar and the history of the tab no longer
 * contain the code when this returns.
 */
export function takeSignInCode(): string | undefined {
  const [, code] = /^#\/sign-in\/(.*)$/.exec(location.hash) ?? [];
  if (code === undefined) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  // `replaceState` tells no listener that the route has changed.
  dispatchEvent(new HashChangeEvent("hashchange"));
  return code;
}
